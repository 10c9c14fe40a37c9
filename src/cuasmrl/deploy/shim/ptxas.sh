# own: this file; python, program: what asks the store; fallback: the ptxas to run unless there is a better
# answer; beside: the name of Triton's tool that this stands for; asked: what the user wants Triton to run.
#
# The real ptxas is run by this shell, exactly as it was called. Only when it has succeeded does Python look
# at what it made, and nothing that happens there can change how the call ends.

real=$asked
if [ -z "$real" ] && [ -n "$beside" ]; then
    # The Triton that calls is mapped into the calling process, and its own ptxas stands beside it.
    library=$(grep -m 1 -o '/.*/_C/libtriton\.so$' "/proc/$PPID/maps" 2>/dev/null)
    real=${library%/_C/libtriton.so}/backends/nvidia/bin/$beside
    [ -n "$library" ] && [ -x "$real" ] || real=$fallback
fi
[ -n "$real" ] || real=$fallback

case ":$CUASMRL_INSIDE:" in
*":$own:"*)
    echo "cuasmrl: the ptxas shim $own would call itself; unset TRITON_PTXAS_PATH and" \
        "TRITON_PTXAS_BLACKWELL_PATH, or take its folder out of PATH and CUDA_HOME" >&2
    exit 127
    ;;
esac
if [ ! -x "$real" ]; then
    echo "cuasmrl: there is no ptxas to run at '$real'; start the build again with \`cuasmrl run\`" >&2
    exit 127
fi
if [ -n "$CUASMRL_INSIDE" ]; then
    # A shim that another shim calls is only a link of the chain.
    export CUASMRL_INSIDE="$CUASMRL_INSIDE:$own"
    exec "$real" "$@"
fi

# Once in a session, and in its log.
not_asked() {
    if [ -n "$CUASMRL_SESSION" ]; then
        echo '{"output": "", "used": false, "doubt": true, "reason": "Python or cuasmrl does not run"}' \
            >>"$CUASMRL_SESSION/events.jsonl"
        (set -C && : >"$CUASMRL_SESSION/told") || return
    fi 2>/dev/null
    echo "cuasmrl: ptxas's own code is kept: $python does not run $program" >&2
}

CUASMRL_INSIDE=$own "$real" "$@"
status=$?
if [ $status -eq 0 ]; then
    # Triton's kernels are recorded by the process that launches them, which knows more than we do.
    mode=$CUASMRL_MODE
    [ -n "$beside" ] && [ -n "$CUASMRL_TRITON" ] && mode=deploy
    [ -x "$python" ] && [ -r "$program" ] &&
        CUASMRL_MODE=$mode "$python" -I -S "$program" "$real" "$@" </dev/null || not_asked
elif [ $status -gt 128 ]; then
    # Who called shall see the signal that ended ptxas, not a number that stands for it.
    kill -s "$(kill -l $status 2>/dev/null)" $$ 2>/dev/null
fi
exit $status
