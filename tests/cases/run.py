#!/usr/bin/env python3
"""Runs the bug-report cases in this folder against a command or against a peer.

  run.py --cmd "tenon run {model} --inputs {inputs} --outputs {outputs}" [filter ...]
  run.py --peer ort|openvino|onnxslim|onnxsim [filter ...]        (needs those packages in this Python)

Needs numpy.  Contract of a command: reads the model and one .npz of inputs (key = graph input name),
writes one .npz of outputs (key = graph output name; a sequence output NAME is written as NAME[0], NAME[1], ...),
exits 0.  On a model or input that it refuses it exits 1..125 with a message on stderr and writes nothing.
A signal, an exit code >= 126 or a time-out is a crash.  Placeholders: {model} {inputs} {outputs};
{inputs_all} {outputs_all} (comma-separated lists) if the command can run several inputs in one session.
--opt-cmd "tenon optimize {model} -o {optimized}" adds the size checks of the perf cases.

case.json: expect "equal" (expected.npz within rtol/atol; dtype, shape and names too; NaN equals NaN;
"signed_zero": signs of zero count) or "error" (clean error; "or_outputs": any outputs are fine too).
"allow_unsupported": a clean error counts as a pass of its own kind.  "error_mentions": the message should
hold one of these words (else the pass is marked 'vague').  "perf": limits against baseline_model run by the same command.
"""
import argparse, json, os, re, resource, shlex, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))


# ---------------------------------------------------------------- adapters (run in a child process)
def _np_inputs(path):
    import numpy as np
    with np.load(path) as z:
        return {k: z[k] for k in z.files}


def _save(path, d):
    import numpy as np
    out = {}
    for k, v in d.items():
        if isinstance(v, (list, tuple)):
            for i, e in enumerate(v):
                out[f"{k}[{i}]"] = np.asarray(e)
            continue
        v = np.asarray(v)
        out[k] = v.astype(str) if v.dtype.kind in "OS" else v
    np.savez(path, **out)


def _ort_session(model, level, save=None):
    import onnxruntime as ort
    so = ort.SessionOptions()
    so.log_severity_level = 4
    so.intra_op_num_threads = 2
    so.graph_optimization_level = {"all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL, "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL}[level]
    if save:
        so.optimized_model_filepath = save
    return ort.InferenceSession(model, so, providers=["CPUExecutionProvider"])


def _ort_run(sess, inputs):
    names = {i.name for i in sess.get_inputs()} | {i.name for i in sess.get_overridable_initializers()}
    feeds = {k: (v.astype(object) if v.dtype.kind == "U" else v) for k, v in inputs.items()}
    missing = set(feeds) - names
    if missing:
        raise RuntimeError(f"the model has lost its input(s) {sorted(missing)}")
    return {o.name: v for o, v in zip(sess.get_outputs(), sess.run(None, feeds))}


def _simplify(peer, model):
    import onnx
    if peer == "onnxslim":
        import onnxslim
        m = onnxslim.slim(model)
    else:
        import onnxsim
        m, ok = onnxsim.simplify(model)
        if not ok:
            raise RuntimeError("onnxsim's own check failed")
    return m


def _adapter(peer, model, inputs, outputs, optimized):
    ins = inputs.split(",") if inputs else []
    outs = outputs.split(",") if outputs else []
    if peer in ("ort", "ort-noopt"):
        s = _ort_session(model, "all" if peer == "ort" else "off", optimized)
        run = lambda f: _ort_run(s, f)
    elif peer in ("onnxslim", "onnxsim"):
        import onnx
        m = _simplify(peer, model)
        d = tempfile.mkdtemp()
        try:
            p = os.path.join(d, "m.onnx")
            onnx.save(m, p)
            if optimized:
                shutil.copy(p, optimized)
            s = _ort_session(p, "off")
        finally:
            shutil.rmtree(d, ignore_errors=True)
        run = lambda f: _ort_run(s, f)
    elif peer == "openvino":
        import numpy as np, openvino as ov
        core = ov.Core()
        om = core.read_model(model)
        pos = {}
        for i, p in enumerate(om.inputs):      # OpenVINO may rename the value of a pass-through input: match by node name too
            for nm in set(p.names) | {p.get_node().get_friendly_name()}:
                pos[nm] = i
        cm = core.compile_model(om, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"})
        import onnx
        names = [o.name for o in onnx.load(model, load_external_data=False).graph.output]
        if len(names) != len(cm.outputs):
            raise RuntimeError(f"{len(cm.outputs)} outputs, want {len(names)}")

        def run(f):
            req = cm.create_infer_request()
            missing = set(f) - set(pos)
            if missing:
                raise RuntimeError(f"the model has lost its input(s) {sorted(missing)}")
            for k, v in f.items():
                req.set_input_tensor(pos[k], ov.Tensor(np.array(v)))
            req.infer()
            r = {}
            for i, nm in enumerate(names):
                t = req.get_output_tensor(i)
                r[nm] = np.array(t.str_data if t.element_type == ov.Type.string else t.data).copy()
                if t.element_type == ov.Type.boolean:
                    r[nm] = r[nm].astype(bool)
            return r
    else:
        raise SystemExit(f"unknown peer {peer}")
    res = [run(_np_inputs(i)) for i in ins]
    for o, r in zip(outs, res):
        _save(o, r)


def adapter_main(a):
    try:
        _adapter(a.adapter, a.model, a.inputs, a.outputs, a.optimized)
    except Exception as e:
        print(f"{type(e).__name__}: {e}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(3)
    sys.stdout.flush()
    os._exit(0)


# ---------------------------------------------------------------- running one command
class Run:
    pass


def execute(argv, timeout, max_rss_mb):
    r = Run()
    err = tempfile.TemporaryFile()
    t0 = time.perf_counter()
    cwd = tempfile.mkdtemp()
    try:
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, cwd=cwd, start_new_session=True)
    except OSError as e:
        sys.exit(f"cannot run {argv[0]}: {e}")
    killed = None
    delay = 0.002
    while True:
        pid, st, ru = os.wait4(p.pid, os.WNOHANG)
        if pid:
            break
        if time.perf_counter() - t0 > timeout:
            killed = killed or "timeout"
        try:
            rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{p.pid}/status").read()).group(1)) / 1024
            if rss > max_rss_mb:
                killed = killed or "memory"
        except (OSError, AttributeError):
            pass
        if killed:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(delay)
        delay = min(delay * 1.5, 0.02)
    p.returncode = 0
    r.seconds = time.perf_counter() - t0
    r.rss_mb = ru.ru_maxrss / 1024
    r.code = -os.WTERMSIG(st) if os.WIFSIGNALED(st) else os.WEXITSTATUS(st)
    r.killed = killed
    err.seek(0)
    r.err = err.read().decode("utf-8", "replace").strip()
    shutil.rmtree(cwd, ignore_errors=True)
    return r


def fill(template, **kw):
    argv = [tok.format(**kw) for tok in shlex.split(template)]
    if os.sep in argv[0]:                      # each command runs in an empty folder of its own
        argv[0] = os.path.abspath(argv[0])
    return argv


def compare(exp_path, got_path, c):
    import numpy as np
    e, g = _np_inputs(exp_path), _np_inputs(got_path)
    if set(e) - set(g):
        return f"missing output {sorted(set(e) - set(g))[0]}"
    extra = set(g) - set(e)
    if extra:
        return f"unexpected output {sorted(extra)[0]}"
    for k in e:
        a, b = e[k], g[k]
        if a.shape != b.shape:
            return f"{k}: shape {list(b.shape)}, want {list(a.shape)}"
        if a.dtype.kind in "US":
            if not (a.astype(str) == b.astype(str)).all():
                return f"{k}: strings differ"
            continue
        if a.dtype != b.dtype:
            return f"{k}: type {b.dtype}, want {a.dtype}"
        if a.dtype.kind == "f":
            with np.errstate(all="ignore"):
                ok = np.isclose(b.astype(np.float64), a.astype(np.float64), rtol=c["rtol"], atol=c["atol"], equal_nan=True)
            if c.get("signed_zero"):
                ok &= (a != 0) | (np.signbit(a) == np.signbit(b))
        else:
            ok = a == b
        if not ok.all():
            i = tuple(int(x) for x in np.argwhere(~ok)[0])
            return f"{k}: {int((~ok).sum())} of {ok.size} wrong, first at {list(i)}: {b[i]!r}, want {a[i]!r}"
    return None


def tail(msg):
    ls = [l.strip() for l in msg.splitlines() if l.strip()]
    return (ls[-1] if ls else "")[:200]


def one_case(folder, run_t, opt_t, timeout, max_rss):
    d = os.path.join(HERE, folder)
    c = json.load(open(os.path.join(d, "case.json")))
    tmp = tempfile.mkdtemp()
    perf = c.get("perf", {})
    timeout = max(timeout, perf.get("timeout_s", 0))
    try:
        runs = c.get("runs", 1)
        sfx = [""] + [f"_{i}" for i in range(2, runs + 1)]
        ins = [os.path.join(d, f"inputs{s}.npz") for s in sfx]
        outs = [os.path.join(tmp, f"out{s}.npz") for s in sfx]
        model = os.path.join(d, "model.onnx")
        kw = dict(model=model, inputs_all=",".join(ins), outputs_all=",".join(outs))
        together = "{inputs_all}" in run_t
        secs = 0
        for i in range(1 if together else runs):
            r = execute(fill(run_t, inputs=ins[i], outputs=outs[i], **kw), timeout, max_rss)
            secs += r.seconds
            if r.code or r.killed:
                break
        have = all(os.path.exists(o) for o in outs)
        res = dict(case=folder, kind=c["kind"], source=c["source"], seconds=round(secs, 3), rss_mb=round(r.rss_mb, 1))
        if r.killed:
            return dict(res, status=r.killed, note=f"killed after {secs:.1f} s, {r.rss_mb:.0f} MB")
        if r.code < 0 or r.code >= 126:
            return dict(res, status="crash", note=(f"signal {-r.code}" if r.code < 0 else f"exit {r.code}") + "; " + tail(r.err))
        failed = r.code != 0
        if failed and not r.err:
            return dict(res, status="silent", note=f"exit {r.code} without a message")
        low = r.err.lower()
        vague = failed and c.get("error_mentions") and not any(w.lower() in low for w in c["error_mentions"])
        if c["expect"] == "error":
            if failed:
                return dict(res, status="pass", note=("vague: " if vague else "") + tail(r.err))
            if c.get("or_outputs") and have:
                return dict(res, status="pass", note="ran")
            return dict(res, status="accepted", note="no error for an invalid model or input")
        if failed:
            if c.get("allow_unsupported"):
                return dict(res, status="pass-unsupported", note=tail(r.err))
            return dict(res, status="reject", note=tail(r.err))
        if not have:
            return dict(res, status="silent", note="exit 0 but no outputs")
        for s, o in zip(sfx, outs):
            e = compare(os.path.join(d, f"expected{s}.npz"), o, c)
            if e:
                return dict(res, status="wrong", note=(f"run{s}: " if s else "") + e)
        if perf:
            base = execute(fill(run_t, inputs=ins[0], outputs=os.path.join(tmp, "b.npz"), model=os.path.join(d, perf["baseline_model"]), inputs_all=ins[0], outputs_all=os.path.join(tmp, "b.npz")), timeout, max_rss)
            res["baseline_s"], res["baseline_rss_mb"] = round(base.seconds, 3), round(base.rss_mb, 1)
            if "max_time_ratio" in perf:
                ratio = secs / max(base.seconds, perf.get("min_baseline_s", 0))
                if ratio > perf["max_time_ratio"]:
                    return dict(res, status="slow", note=f"{secs:.1f} s against {base.seconds:.2f} s, ratio {ratio:.0f} > {perf['max_time_ratio']}")
            if "max_extra_rss_mb" in perf and r.rss_mb - base.rss_mb > perf["max_extra_rss_mb"]:
                return dict(res, status="fat", note=f"{r.rss_mb - base.rss_mb:.0f} MB over the baseline > {perf['max_extra_rss_mb']}")
            if opt_t and "max_optimised_bytes" in perf:
                op = os.path.join(tmp, "opt.onnx")
                o = execute(fill(opt_t, optimized=op, inputs=ins[0], outputs=os.path.join(tmp, "o.npz"), model=model, inputs_all=ins[0], outputs_all=os.path.join(tmp, "o.npz")), timeout, max_rss)
                size = sum(os.path.getsize(os.path.join(tmp, f)) for f in os.listdir(tmp) if f.startswith("opt.onnx")) if os.path.exists(op) else None
                if o.code or size is None:
                    return dict(res, status="reject", note="optimise command failed: " + tail(o.err))
                res["optimised_bytes"] = size
                if size > perf["max_optimised_bytes"]:
                    return dict(res, status="fat", note=f"optimised model has {size} bytes > {perf['max_optimised_bytes']}")
        return dict(res, status="pass", note="")
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


def all_cases():
    return sorted(f for f in os.listdir(HERE) if re.match(r"\d+-", f) and os.path.exists(os.path.join(HERE, f, "case.json")))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("filter", nargs="*", help="parts of case names")
    ap.add_argument("--cmd"); ap.add_argument("--opt-cmd"); ap.add_argument("--peer", choices=["ort", "ort-noopt", "openvino", "onnxslim", "onnxsim"])
    ap.add_argument("--timeout", type=float, default=60); ap.add_argument("--max-rss-mb", type=float, default=6000)
    ap.add_argument("--json"); ap.add_argument("--quiet", action="store_true")
    for o in ("--adapter", "--model", "--inputs", "--outputs", "--optimized"):
        ap.add_argument(o, help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.adapter:
        return adapter_main(a)
    cases = all_cases()
    if a.filter:
        cases = [c for c in cases if any(f in c for f in a.filter)]
    if a.peer:
        me = f"{shlex.quote(sys.executable)} {shlex.quote(os.path.abspath(__file__))} --adapter {a.peer} --model {{model}} --inputs {{inputs_all}} --outputs {{outputs_all}}"
        run_t, opt_t = me, None if a.peer == "openvino" else me + " --optimized {optimized}"
    elif a.cmd:
        run_t, opt_t = a.cmd, a.opt_cmd
    else:
        ap.error("give --cmd or --peer")
    results, count = [], {}
    for c in cases:
        r = one_case(c, run_t, opt_t, a.timeout, a.max_rss_mb)
        results.append(r)
        count[r["status"]] = count.get(r["status"], 0) + 1
        if not a.quiet or not r["status"].startswith("pass"):
            print(f"{'ok  ' if r['status'].startswith('pass') else 'FAIL'} {c:38s} {r['status']:16s} {r['seconds']:7.2f}s  {r['note'][:150]}", flush=True)
    good = sum(v for k, v in count.items() if k.startswith("pass"))
    if a.json:
        json.dump(dict(command=run_t if not a.peer else a.peer, results=results), open(a.json, "w"), indent=1)
    print(f"{good} passed, {len(results) - good} failed" + ("" if good == len(results) else "   " + str({k: v for k, v in sorted(count.items()) if not k.startswith('pass')})))
    return 0 if good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
