import { beforeAll, describe, expect, test, vi } from "vitest";
import { isAgentCell } from "../src/cells";
import type { LiveRun } from "../src/live_run";
import { waitingCalls } from "../src/view/activity";
import type { CallStep, Run } from "../src/view/record";
import { run } from "./fixtures";

// JupyterLab's packages ask for these when they are imported, and jsdom has none.
vi.hoisted(() => {
  vi.stubGlobal("DragEvent", MouseEvent);
  vi.stubGlobal("matchMedia", () => new EventTarget());
  vi.stubGlobal("IntersectionObserver", class {});
  vi.stubGlobal("ResizeObserver", class {});
});

function calling(state: CallStep["state"], name = "load_table", children: Run["children"] = {}): Run {
  const call = { kind: "tool_call", id: "c1", name, arguments: {}, raw_arguments: null } as const;
  const step: CallStep = { kind: "call", round: 3, call, state, output: [], result: null, started: 1 };
  return { ...run("everything"), run_id: `run-${name}`, stop_reason: null, rounds: 3, steps: [step], children };
}

describe("an agent cell is what IPython takes as one", () => {
  test.each([
    "%%agent",
    "%%agent --tools a\nDo it.",
    "%%agent\nDo it.",
    "\n \n  %%agent\nDo it.",
    "%%agent \t\nDo it.",
  ])("%j", (source) => expect(isAgentCell(source)).toBe(true));

  test.each(["", "%agent", "%%agents", "%%agent\ttools", "# a comment\n%%agent", "x = 1\n%%agent", "%%time\n%%agent"])(
    "not %j",
    (source) => expect(isAgentCell(source)).toBe(false),
  );
});

describe("the status bar says", () => {
  let describeRuns: (here: LiveRun | undefined, all: LiveRun[]) => string;
  const of = (notebook: string, more = {}) =>
    ({ notebook, run: calling("running"), link: { state: "live" }, ...more }) as unknown as LiveRun;

  beforeAll(async () => {
    ({ describe: describeRuns } = await import("../src/status"));
  });

  test("nothing when nothing runs", () => {
    expect(describeRuns(undefined, [])).toBe("");
  });

  test("what the agent of this notebook does, and how many others run", () => {
    const here = of("a");
    expect(describeRuns(here, [here])).toBe("Agent: round 3, running load_table");
    expect(describeRuns(here, [here, of("b")])).toBe("Agent: round 3, running load_table (and in another notebook)");
    expect(describeRuns(here, [here, of("b"), of("c")])).toContain("(and in 2 other notebooks)");
  });

  test("where agents run that are not in this notebook", () => {
    expect(describeRuns(undefined, [of("b")])).toBe("Agent: running in another notebook");
    expect(describeRuns(undefined, [of("b"), of("c")])).toBe("Agent: running in 2 other notebooks");
  });

  test("no more than what is known of a run that is being stopped, or of a kernel that hears nothing", () => {
    const stopping = of("a", { isStopping: true });
    const late = of("a", { link: { state: "late", reason: "" } });
    expect(describeRuns(stopping, [stopping])).toBe("Agent: stopping");
    expect(describeRuns(late, [late])).toBe("Agent: running");
  });
});

describe("the calls that wait for a person's yes", () => {
  test("are found in a run and in those nested in it", () => {
    const nested = calling("waiting", "delete");
    expect(waitingCalls(nested).map(({ name }) => name)).toEqual(["delete"]);
    expect(waitingCalls(calling("running", "research", { c1: [nested] }))).toEqual(waitingCalls(nested));
  });

  test("are none when they were answered", () => {
    expect(waitingCalls(calling("running"))).toEqual([]);
    expect(waitingCalls({ ...calling("running"), steps: [] })).toEqual([]);
  });
});
