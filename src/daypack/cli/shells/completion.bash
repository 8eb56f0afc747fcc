# Completion of daypack for bash, printed by `daypack completion bash`. It works with bash 3.2, which macOS has.

# Of a command (and action): its options, the values they take, its arguments in order, its actions.
_daypack_table() {
    case "$1" in
@TABLE@
    *) return 1 ;;
    esac
}

_daypack_add() { # words that begin with the current one; quoted, because names may have spaces
    local word quoted
    for word in "$@"; do
        [[ $word == "$cur"* ]] || continue
        printf -v quoted %q "$word"
        COMPREPLY+=("$quoted")
    done
}

_daypack_add_kind() { # @session, @agent, @file, @folder, - for nothing, or words separated by |
    local name
    case "$1" in
    @session | @agent)
        while IFS= read -r name; do
            _daypack_add "$name"
        done < <("$program" completion "${1#@}s" "${place[@]}" 2>/dev/null)
        ;;
    @file | @folder)
        compopt -o filenames 2>/dev/null
        while IFS= read -r name; do
            COMPREPLY+=("$name")
        done < <(if [[ $1 == @file ]]; then compgen -f -- "$cur"; else compgen -d -- "$cur"; fi)
        ;;
    -) ;;
    *) _daypack_add ${1//|/ } ;;
    esac
}

_daypack_find_kind() { # of the value of an option
    local value
    for value in $values; do
        [[ $value == "$1="* ]] && kind=${value#*=} && return
    done
    return 1
}

_daypack() {
    local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} words=() place=("--uid=") program word cur kind
    local command='' action='' option='' options='--help --version --home --agent --uid'
    local values='--home=@folder --agent=@agent --uid=-' places='' actions='' at=0
    COMPREPLY=()
    read -a words <<<"$line"
    [[ $line == *[[:space:]] && $line != *\\[[:space:]] ]] && words+=('')
    program=${words[0]/#\~/$HOME} cur=${words[${#words[@]} - 1]}
    for word in "${words[@]:1:${#words[@]}-2}"; do
        if [[ -n $option ]]; then
            case "$option" in --home | --agent | --uid) place+=("$option=$word") ;; esac
            option=''
            continue
        fi
        case "$word" in
        --home=* | --agent=* | --uid=*) place+=("$word") ;;
        --*=*) ;;
        -*) _daypack_find_kind "$word" && option=$word ;;
        *)
            if [[ -z $command ]]; then
                command=$word
                _daypack_table "$command" || return
            elif [[ -n $actions && -z $action ]]; then
                action=$word
                _daypack_table "$command $action" || return
            else
                at=$((at + 1))
            fi
            ;;
        esac
    done
    local kinds=($places)
    local last=$((${#kinds[@]} - 1))
    if [[ $at -gt $last && $last -ge 0 && ${kinds[last]} == *+ ]]; then
        at=$last # an argument that can be repeated
    fi
    if [[ -n $option ]]; then
        _daypack_find_kind "$option" && _daypack_add_kind "$kind"
    elif [[ $cur == --*=* ]]; then
        option=${cur%%=*} cur=${cur#*=}
        _daypack_find_kind "$option" && _daypack_add_kind "$kind"
    elif [[ $cur == -* ]]; then
        _daypack_add $options
    elif [[ -z $command ]]; then
        _daypack_add @COMMANDS@
    elif [[ -n $actions && -z $action ]]; then
        _daypack_add $actions
    elif [[ $at -le $last ]]; then
        _daypack_add_kind "${kinds[at]%+}"
    fi
    # For bash a colon ends a word: what precedes it is not replaced.
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        cur=${cur%"${cur##*:}"}
        for at in "${!COMPREPLY[@]}"; do
            COMPREPLY[at]=${COMPREPLY[at]#"$cur"}
        done
    fi
}

complete -F _daypack daypack
