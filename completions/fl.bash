# Completion of fl for bash: put it into ~/.local/share/bash-completion/completions/fl, or
#   source <(fl completion bash)
# The candidates come from `fl __complete`, so that they always are those of the installed program.

_fl() {
  local cur=${COMP_WORDS[COMP_CWORD]} last=0 joined='' word i
  local -a words=('')

  # bash breaks words at = and :, which are parts of a word for fl.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $i -gt 1 && $word && $word != *[!=:]* ]]; then
      words[last]+=$word
      joined=1
    elif [[ $joined ]]; then
      words[last]+=$word
      joined=''
    else
      last=$i
      words[last]=$word
    fi
  done
  [[ $cur && $cur != *[!=:]* ]] && cur=''
  local whole=${words[last]}
  local prefix=${whole%"$cur"}
  unset 'words[0]'

  local output line directive=0
  output=$("${COMP_WORDS[0]/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null) || return
  COMPREPLY=()
  while IFS='' read -r line; do
    case $line in
      :[0-9]*) directive=${line#:} ;;
      ?*)
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$prefix"}")
        ;;
    esac
  done <<<"$output"

  if ((directive & 2)); then
    compopt -o nospace 2>/dev/null
  elif [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
  if ((directive & 16)); then
    compopt -o filenames 2>/dev/null
    while IFS='' read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$cur")
  elif ((!(directive & 4))); then
    compopt -o filenames 2>/dev/null
    while IFS='' read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
  fi
}

complete -F _fl fl
