# Completion of daypack for fish, printed by `daypack completion fish`.

function __daypack_valued # the options of a command (and action) that take a value
    switch "$argv"
@VALUED@
        case '*'
            echo --home --agent --uid
    end | string split ' '
end

function __daypack_place # the arguments that were given, after the options of the place they are in
    set -l name
    set -l option
    set -l count 0
    set -l place --uid=
    for word in (commandline -opc)[2..-1]
        if test -n "$option"
            contains -- $option --home --agent --uid; and set -a place $option=$word
            set option
        else if string match -qr -- '^--(home|agent|uid)=' $word
            set -a place $word
        else if string match -q -- '-*' $word
            contains -- $word (__daypack_valued $name); and set option $word
        else if test (count $name) -eq 0
            set name $word
        else if test (count $name) -eq 1; and contains -- $name @NOUNS@
            set -a name $word
        else
            set count (math $count + 1)
        end
    end
    printf '%s\n' "$name" $count $place
end

function __daypack_at # a command (and action), and optionally the number of the argument, or a + after it
    set -l here (__daypack_place)
    test "$here[1]" = "$argv[1]"; or return 1
    test (count $argv) -eq 1; and return 0
    set -l number (string replace + '' -- $argv[2])
    test $here[2] -eq $number; and return 0
    string match -q -- '*+' $argv[2]; and test $here[2] -gt $number
end

function __daypack_names # of sessions or agents
    set -l place (__daypack_place)[3..-1]
    set -l program (commandline -opc)[1]
    $program completion $argv[1] $place 2>/dev/null
end

complete -c daypack -f
complete -c daypack -n '__daypack_at ""' -l help -d 'Show the overview'
complete -c daypack -n '__daypack_at ""' -l version -d 'Show the version'
complete -c daypack -n '__daypack_at ""' -l home -r -a '(__fish_complete_directories)' -d 'Root folder'
complete -c daypack -n '__daypack_at ""' -l agent -x -a '(__daypack_names agents)' -d Agent
complete -c daypack -n '__daypack_at ""' -l uid -x -d 'User folder'
@COMPLETE@
