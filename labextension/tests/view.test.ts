import { beforeEach, describe, expect, test } from "vitest";
import { duration } from "../src/view/amounts";
import { mount } from "../src/view/mount";
import type { AssistantStep, CallStep, Run } from "../src/view/record";
import { run, runs } from "./fixtures";

let el: HTMLElement;

beforeEach(() => {
  el = document.createElement("div");
});

function drawn(run: Run): ShadowRoot {
  mount(el, run);
  return el.shadowRoot as ShadowRoot;
}

/** As somebody sees it who opens all that can be opened. */
function opened(run: Run): ShadowRoot {
  const root = drawn(run);
  const closed = () => root.querySelector<HTMLElement>("details:not([open]) > summary");
  while (closed()) {
    closed()?.click();
  }
  return root;
}

function labels(root: ParentNode, selector: string): (string | null)[] {
  return [...root.querySelectorAll(selector)].map((element) => element.getAttribute("aria-label"));
}

describe.each(Object.entries(runs))("the run %s", (_name, run) => {
  test("shows each round, the calls in order, and every text that was said", () => {
    const root = opened(run);

    const rounds = Array.from({ length: run.rounds }, (_, index) => `Round ${index + 1}`);
    expect(labels(root, ".round:not(.call .round)")).toEqual(rounds);
    const calls = run.steps.filter((step): step is CallStep => step.kind === "call");
    const names = [...root.querySelectorAll(".call:not(.call .call) > summary code")].map((code) => code.textContent);
    expect(names).toEqual(calls.map((step) => step.call.name));
    for (const step of run.steps) {
      const blocks = step.kind === "user" || step.kind === "assistant" ? step.message.content : [];
      for (const block of blocks) {
        if (block.kind === "text") {
          // Markdown of the model is drawn as such.
          const said = step.kind === "user" ? block.text : block.text.replaceAll("**", "");
          expect(root.textContent).toContain(said);
        }
      }
    }
  });

  test("looks the same when it is drawn again", () => {
    const first = drawn(run).innerHTML;

    expect(drawn(run).innerHTML).toBe(first);
  });
});

describe("a run in which everything happens", () => {
  test("a nested run stands inside the call that opened it", () => {
    const root = opened(run("everything"));

    const nested = root.querySelector('.call [aria-label="Run nested in summarise"]');
    expect(nested?.closest(".call")?.querySelector("code")?.textContent).toBe("summarise");
    expect(nested?.textContent).toContain("Sales fell by a third.");
  });

  test("a failed call says so, shows what the model wrote, and is open", () => {
    const root = drawn(run("everything"));

    const failed = root.querySelector<HTMLDetailsElement>('.call[data-state="error"]');
    expect(failed?.open).toBe(true);
    expect(failed?.querySelector(".state")?.textContent).toBe("failed");
    expect(failed?.textContent).toContain('{"path": "sal');
  });

  test("the error of the run, the retry, and the message that came too late are shown", () => {
    const root = drawn(run("everything"));

    expect(root.querySelector(".error")?.textContent).toContain("The server closed the connection");
    expect(root.textContent).toContain("Attempt 1 failed, next in 0.5 s: The server was busy (503).");
    expect(root.textContent).toContain("YouThankswhile it ran, not delivered");
  });

  test("what a function drew and what it returned are images that a browser can decode", () => {
    const images = [...drawn(run("everything")).querySelectorAll("img")];

    expect(images.map((image) => image.alt)).toEqual(["Figure from plot", "Image from plot"]);
    for (const image of images) {
      const [head, data] = image.src.split(",");
      expect(head).toBe("data:image/png;base64");
      expect(atob(data ?? "")).toMatch(/^\x89PNG/);
    }
  });
});

function firstReply({ steps }: Run): AssistantStep {
  return steps.find((step) => step.kind === "assistant") as AssistantStep;
}

describe("the head of a run", () => {
  const head = (changed: Partial<Run>) => {
    const parts = drawn({ ...run("everything"), ...changed }).querySelector("header")?.children ?? [];
    return [...parts].filter((part) => !part.matches(".folding")).map((part) => part.textContent);
  };

  test("tells in one line how it ended, after how many rounds, of which model, how long it took, and its tokens", () => {
    // Those of the nested run too.
    expect(head({})).toEqual(["✗", "Failed", "3 rounds", "scripted:demo", "10 s", "480 tokens in, 48 out"]);
    expect(head({ stop_reason: "stop", rounds: 1 }).slice(0, 3)).toEqual(["✓", "Done", "1 round"]);
    expect(head({ stop_reason: null }).slice(0, 3)).toEqual(["–", "Not ended", "round 3"]);
  });

  test("adds up what the replies cost, those of nested runs too, where prices are known", () => {
    const reply = (cost: number | null) => ({ ...firstReply(run("everything")), cost });
    const nested = { ...run("everything"), steps: [reply(0.015)], children: {} };

    expect(head({ steps: [reply(0.004), reply(null)], children: { c: [nested] } }).at(-1)).toBe("$0.02");
    expect(head({ steps: [reply(0.004)], children: {} }).at(-1)).toBe("less than $0.01");
  });

  test("leaves out what is not known", () => {
    const unknown: Partial<Run> = { steps: [], children: {}, model: "", started: null, ended: null };
    expect(head(unknown)).toEqual(["✗", "Failed", "3 rounds"]);
  });
});

test("a call that is done is a line: its mark, what was called, how the result begins, and the time it took", () => {
  const line = drawn(run("everything")).querySelector(".call:not([open]) > summary");

  expect(line?.textContent).toBe(
    '✓load_sales(year=2026) [{"month": 1, "total": 120}, {"month": 2, "total": 80}]  0.5 s',
  );
});

test("only a call that is done or did not run is folded, and none tells its state by colour alone", () => {
  const [step] = run("everything").steps.filter((step) => step.kind === "call");
  const states = ["running", "waiting", "ok", "error", "skipped", "not_run", "interrupted"] as const;
  const steps = states.map((state) => ({ ...(step as CallStep), state }));

  const calls = [...drawn({ ...run("everything"), steps }).querySelectorAll<HTMLDetailsElement>(".round > .call")];

  expect(calls.filter(({ open }) => !open).map(({ dataset }) => dataset.state)).toEqual(["ok", "skipped", "not_run"]);
  expect(calls.map((call) => labels(call, "summary > [role=img]")[0])).toEqual([
    "running",
    "waits for approval",
    "done",
    "failed",
    "skipped",
    "not run",
    "interrupted",
  ]);
});

test.each([
  [0, "0.0 s"],
  [0.9996, "1.0 s"],
  [9.96, "10 s"],
  [59.6, "1 min 0 s"],
  [3599.6, "1 h 0 min"],
])("%d seconds are written as %s", (seconds, written) => {
  expect(duration(1000, 1000 + seconds)).toBe(written);
});

test("what a model or a function says is never HTML", () => {
  const evil = "<img src=x onerror=alert(1)><script>alert(1)</script>";
  const text = JSON.stringify(run("everything")).replaceAll("Sales", JSON.stringify(evil).slice(1, -1));

  const root = drawn(JSON.parse(text));

  expect(root.textContent).toContain(evil);
  expect(root.querySelector("script, [onerror], img:not([src^='data:'])")).toBeNull();
});

/** A run in which the model says `text`. */
function saying(text: string): Run {
  const content = [{ kind: "text" as const, text }];
  const message = { kind: "assistant" as const, content, stop_reason: "stop" as const };
  return { ...run("everything"), rounds: 1, steps: [{ kind: "assistant", round: 1, message }] };
}

test("a very long text is folded in its middle, and nothing of it is lost", () => {
  const text = `${"<b>".repeat(3333)}🙂${"x".repeat(1_000_000)}🙂${"y".repeat(9999)}`;

  const said = drawn(saying(text)).querySelector(".text");

  const summary = said?.querySelector("details:not([open]) > summary");
  expect(summary?.textContent).toBe("… 1,000,002 more characters …");
  (summary as HTMLElement | undefined)?.click();
  summary?.remove();
  expect(said?.textContent).toBe(text);
});

test("a text that is not very long is one text", () => {
  expect(drawn(saying("x".repeat(20_000))).querySelector(".text p")?.childNodes).toHaveLength(1);
});

test("control characters, and what turns the direction of text, are seen and do nothing", () => {
  const text = "\x1b[31m \x9b1m \x00 \u202egnp.exe one\r\ntwo\tthree \u2028 مرحبا 👨‍👩‍👧";

  const said = drawn(saying(text)).querySelector(".text")?.textContent;

  expect(said).toBe("\\x1b[31m \\x9b1m \\x00 \\u202egnp.exe one\ntwo\tthree \\u2028 مرحبا 👨‍👩‍👧\n");
});

test("a call that the model is still writing is shown before it starts", () => {
  const unfinished = run("everything");
  unfinished.steps = unfinished.steps.filter((step) => step.kind !== "call");

  expect(drawn(unfinished).querySelector(".assistant")?.textContent).toContain("load_sales");
});

test("a run that is stopped, cut off or at its cap says so", () => {
  expect(drawn({ ...run("everything"), stop_reason: "aborted" }).textContent).toContain("Stopped.");
  expect(drawn({ ...run("everything"), stop_reason: "max_iterations" }).textContent).toContain("Ended after 3 rounds");
});

test("a run that had not ended says so where nobody can tell how it goes on", () => {
  expect(drawn({ ...run("everything"), stop_reason: null }).textContent).toContain("had not ended");
});

test("the view imports nothing outside of its folder", () => {
  const sources = import.meta.glob<string>("../src/view/**/*.ts", { query: "?raw", eager: true, import: "default" });
  const foreign = Object.entries(sources).flatMap(([path, source]) =>
    [...source.matchAll(/(?:from|import) "(.*)"/g)]
      .map(([, target]) => new URL(target ?? "", `file:///${path.replace("../", "")}`).pathname)
      .filter((target) => !target.startsWith("/src/view/")),
  );

  expect(Object.keys(sources)).toContain("../src/view/mount.ts");
  expect(foreign).toEqual([]);
});

test("reasoning that is signed and says nothing is not shown, and that which is encrypted is said to be there", () => {
  const [first] = Object.values(runs) as [Run];
  const reply = structuredClone(first.steps.find((step) => step.kind === "assistant"));
  if (!reply) throw new Error("the fixture has no reply");
  const thought = (redacted: boolean) => ({ kind: "thinking" as const, thinking: "", redacted, provider_data: null });

  reply.message.content = [thought(false)];
  expect(drawn({ ...first, steps: [reply] }).querySelector(".assistant :is(.thinking, .note)")).toBeNull();
  reply.message.content = [thought(true)];
  expect(drawn({ ...first, steps: [reply] }).textContent).toContain("reasoning was sent encrypted");
});
