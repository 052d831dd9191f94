// Keeps a library of headers alone a library.
