import { beforeEach, expect, test, vi } from "vitest";
import { KernelTransport } from "../src/transport";
import type { Link, Listener } from "../src/view/transport";
import { FakeKernel } from "./kernel";

let kernel: FakeKernel;
const onEnd = vi.fn();
const listener = { onLink: vi.fn<Listener["onLink"]>(), onBatches: vi.fn<Listener["onBatches"]>() };

beforeEach(() => {
  vi.useFakeTimers();
  vi.resetAllMocks();
  kernel = new FakeKernel();
  return () => vi.useRealTimers();
});

async function connected(runId: string | null = "run-1"): Promise<KernelTransport> {
  const transport = new KernelTransport(kernel.connection, runId, onEnd);
  transport.connect(listener);
  await vi.advanceTimersByTimeAsync(0);
  return transport;
}

function states(): Link["state"][] {
  return listener.onLink.mock.calls.map(([link]) => link.state);
}

test("while the kernel is busy, all comm messages go over a subshell, and none before the kernel has answered", async () => {
  kernel.answer = () => ({ ok: true, state: "queued" });
  const transport = new KernelTransport(kernel.connection, "run-1", onEnd);
  transport.connect(listener);
  await expect(transport.steer("too early")).rejects.toThrow("not connected yet");
  await vi.advanceTimersByTimeAsync(0);

  expect(states()).toEqual(["live"]);
  await expect(transport.steer("Use the other file")).resolves.toBe("queued");
  const [subshell] = kernel.running;
  const comms = kernel.sent.filter(({ channel }) => channel === "shell");
  expect(comms.map(({ header }) => header.msg_type)).toEqual(["comm_open", "comm_open", "comm_msg"]);
  expect(comms.every(({ header }) => header.subshell_id === subshell)).toBe(true);
});

test("every request is one message with an id of its own, and settles by its answer alone", async () => {
  const transport = await connected();
  kernel.answer = ({ type, allow }) => {
    if (type === "approve") {
      return allow ? { ok: true } : { ok: false, reason: "No call waits." };
    }
    return { ok: true, state: "undelivered", seq: 4, run: { steps: [] } };
  };

  await expect(transport.steer("a")).resolves.toBe("undelivered");
  await expect(transport.snapshot()).resolves.toEqual({ seq: 4, run: { steps: [] } });
  await expect(transport.approve("run-2", "call_1", true)).resolves.toBeUndefined();
  await expect(transport.approve("run-2", "call_1", false)).rejects.toThrow("No call waits.");
  await transport.stop();
  transport.finish();
  expect(kernel.requests).toMatchObject([
    { type: "steer", text: "a" },
    { type: "snapshot" },
    { type: "approve", run_id: "run-2", call_id: "call_1", allow: true },
    { type: "approve", allow: false },
    { type: "stop" },
    { type: "final" },
  ]);
  expect(new Set(kernel.requests.map(({ id }) => id)).size).toBe(6);
  expect(kernel.interrupts).toBe(0);
});

test("a request that is not answered is given up after 5 seconds", async () => {
  const transport = await connected();
  kernel.answer = () => undefined;

  const failed = expect(transport.steer("a")).rejects.toThrow("did not answer within 5 s");
  await vi.advanceTimersByTimeAsync(5000);
  await failed;
});

test.each(["refused", "not answered"] as const)(
  "where a subshell is %s, messages come late, and Stop interrupts the kernel",
  async (subshells) => {
    kernel.subshells = subshells;
    const transport = await connected();
    await vi.advanceTimersByTimeAsync(3000);

    expect(transport.link).toEqual({ state: "late", reason: expect.stringContaining("when the cell ends") });
    await transport.stop();
    expect(kernel.interrupts).toBe(1);
    await expect(transport.steer("a")).rejects.toThrow("when the cell ends");
  },
);

test("a kernel without subshells whose cell awaits does take messages", async () => {
  kernel.subshells = "refused";
  kernel.isIdle = true;

  const transport = await connected();

  expect(transport.link.state).toBe("live");
});

test("a subshell that comes late is used all the same", async () => {
  kernel.subshells = "not answered";
  let reply: (reply: unknown) => void = () => undefined;
  const send = kernel.sendControlMessage.bind(kernel);
  kernel.sendControlMessage = (message) => {
    const future = send(message);
    reply = (answer) => future.onReply(answer);
    return future;
  };
  await connected();
  await vi.advanceTimersByTimeAsync(3500);
  expect(states()).toEqual(["late"]);

  kernel.running.add("subshell");
  reply({ content: { status: "ok", subshell_id: "subshell" } });
  await vi.advanceTimersByTimeAsync(0);
  expect(states()).toEqual(["late", "live"]);
});

test("patches and the finished run are passed on, those of other comms are not", async () => {
  await connected();
  const batch = { first: 1, last: 1, ops: [] };

  kernel.say("patches", { batches: [batch] });
  kernel.say("patches", { ended: true, bundle: { data: { a: 1 }, metadata: {} } });
  kernel.iopubMessage.emit({ header: { msg_type: "comm_msg" }, content: { comm_id: "other", data: { batches: [] } } });
  kernel.iopubMessage.emit({ header: { msg_type: "status" }, content: { execution_state: "idle" } });
  expect(listener.onBatches.mock.calls).toEqual([[[batch]]]);
  expect(onEnd.mock.calls).toEqual([[{ data: { a: 1 }, metadata: {} }]]);
});

test.each(["restarting", "autorestarting"])(
  "when the kernel is %s the run is gone, and so is what waits",
  async (status) => {
    const transport = await connected();
    kernel.answer = () => undefined;
    const failed = expect(transport.steer("a")).rejects.toThrow("The kernel was restarted: this run is gone.");

    kernel.become(status);
    await failed;
    expect(transport.link.state).toBe("gone");
    kernel.become("idle");
    expect(states()).toEqual(["live", "gone"]);
  },
);

test("a kernel that was restarted from another page is noticed by its first sign of life", async () => {
  const transport = await connected();
  const status = (session: string) =>
    kernel.iopubMessage.emit({ header: { msg_type: "status", session }, content: { execution_state: "idle" } });

  status("process-1");
  expect(transport.link.state).toBe("live");
  status("process-2");
  expect(transport.link).toEqual({ state: "gone", reason: "The kernel was restarted: this run is gone." });
});

test("a run that the kernel does not know is gone, and leaves no subshell and no connection behind", async () => {
  const transport = await connected("run-0");

  expect(transport.link).toEqual({ state: "gone", reason: "This run is no longer going on." });
  expect([kernel.running.size, kernel.connections]).toEqual([0, 0]);
});

test("in a kernel that has not loaded op_jupyter the run is gone", async () => {
  kernel.isLoaded = false;

  expect((await connected()).link.state).toBe("gone");
});

test("after a reload it waits for the connection, and after a lost one it says that something may be missing", async () => {
  kernel.connectionStatus = "connecting";
  await connected();
  expect(kernel.sent).toEqual([]);
  kernel.connect("connected");
  await vi.advanceTimersByTimeAsync(0);
  expect(states()).toEqual(["live"]);

  kernel.connect("connecting");
  kernel.connect("connected");
  expect(states()).toEqual(["live", "live"]);
});

test("the page asks for the run that goes on, and learns its cell", async () => {
  const transport = await connected(null);

  expect(transport).toMatchObject({ runId: "run-1", cellId: "cell-1" });
});

test.each(["dispose", "pagehide"])(
  "on %s the comms are closed, the subshell is deleted once it has done that, and nothing more is heard",
  async (how) => {
    const transport = await connected();
    const { length } = kernel.sent;

    if (how === "dispose") {
      transport.dispose();
    } else {
      globalThis.dispatchEvent(new Event("pagehide"));
    }
    const last = () => kernel.sent.slice(length).map(({ header }) => header.msg_type);
    expect(last()).toEqual(["comm_close", "comm_close"]);
    expect(kernel.running.size).toBe(1);
    await vi.advanceTimersByTimeAsync(0);
    expect(last()).toEqual(["comm_close", "comm_close", "delete_subshell_request"]);
    expect([kernel.running.size, kernel.connections]).toEqual([0, 0]);
    kernel.become("restarting");
    expect(states()).toEqual(["live"]);
  },
);

test("a subshell that is created for a line that was closed meanwhile is deleted", async () => {
  const transport = new KernelTransport(kernel.connection, "run-1", onEnd);
  transport.connect(listener);
  transport.dispose();
  await vi.advanceTimersByTimeAsync(0);

  expect(kernel.running.size).toBe(0);
});

test("the subshells of views that are gone are deleted", async () => {
  kernel.running.add("old");
  kernel.left = ["old"];
  await connected();

  expect([...kernel.running]).toHaveLength(1);
  expect(kernel.running.has("old")).toBe(false);
});
