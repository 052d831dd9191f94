# Completion of fl for fish: put it into ~/.config/fish/completions/fl.fish, or
#   fl completion fish | source
# The candidates come from `fl __complete`, so that they always are those of the installed program.

function __fl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program __complete $words "$current" 2>/dev/null)
    set -l directive 4
    for line in $lines
        if string match -qr '^:[0-9]+$' -- $line
            set directive (string sub -s 2 -- $line)
        else
            echo $line
        end
    end

    # An empty list would swallow what it stands beside.
    set -l prefix ""
    set -l path "$current"
    if string match -qr -- '^--[^=]+=' "$current"
        set prefix (string match -r -- '^--[^=]+=' "$current")
        set path (string replace -r -- '^--[^=]+=' '' "$current")
    end
    if test (math "bitand($directive, 16)") -ne 0
        for found in (__fish_complete_directories "$path")
            echo $prefix$found
        end
    else if test (math "bitand($directive, 4)") -eq 0
        for found in (__fish_complete_path "$path")
            echo $prefix$found
        end
    end
end

complete -c fl -f -a '(__fl_complete)'
