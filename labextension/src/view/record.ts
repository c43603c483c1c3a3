/**
 * The record of a run, as `op_jupyter/record.py` writes it and as a notebook keeps it.
 *
 * Types only. What is optional here varies from one run to the next, and stands in an output's metadata instead.
 */

export interface TextContent {
  kind: "text";
  text: string;
}

export interface ThinkingContent {
  kind: "thinking";
  thinking: string;
  redacted: boolean;
}

export interface ImageContent {
  kind: "image";
  /** Base64, of the alphabet that is safe in a URL or of the common one. */
  data: string;
  mime_type: string;
}

export interface ToolCall {
  kind: "tool_call";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  /** What the model wrote, where that is not a JSON object. */
  raw_arguments: string | null;
}

export interface ServerContent {
  kind: "server";
  name: string;
  data: unknown;
}

export type InputBlock = TextContent | ImageContent;
export type Block = InputBlock | ThinkingContent | ToolCall | ServerContent;

export interface Usage {
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  reasoning: number;
}

export interface UserMessage {
  kind: "user";
  content: InputBlock[];
  source: "user" | "steering" | "follow_up";
}

export interface AssistantMessage {
  kind: "assistant";
  content: Block[];
  stop_reason: "stop" | "length" | "tool_use" | "error" | "aborted";
  usage?: Usage;
}

export interface ToolResultMessage {
  kind: "tool_result";
  tool_call_id: string;
  tool_name: string;
  content: InputBlock[];
  is_error: boolean;
  /** For the person alone. */
  details?: { traceback?: string } | null;
}

export interface UserStep {
  kind: "user";
  round: number;
  message: UserMessage;
  time?: number;
}

export interface AssistantStep {
  kind: "assistant";
  round: number;
  message: AssistantMessage;
  started?: number;
  ended?: number | null;
  /** In US dollars, where the price is known. */
  cost?: number | null;
}

export interface CallStep {
  kind: "call";
  round: number;
  call: ToolCall;
  state: "running" | "waiting" | "ok" | "error" | "skipped" | "not_run" | "interrupted";
  output: Output[];
  /** How the call came to be allowed or refused, where it needs approval; `earlier`: by an `always` before it. */
  approval?: "approved" | "always" | "denied" | "earlier" | null;
  result: ToolResultMessage | null;
  started?: number;
  ended?: number | null;
}

export interface RetryStep {
  kind: "retry";
  round: number;
  attempt: number;
  delay: number;
  reason: string;
  time?: number;
}

export type Step = UserStep | AssistantStep | CallStep | RetryStep;

/** Text as a notebook file holds it. */
export type MultilineText = string | string[];

/** What a function wrote while it ran: the outputs of nbformat. */
export type Output =
  | { output_type: "stream"; name: string; text: MultilineText }
  | { output_type: "display_data" | "execute_result"; data: Record<string, unknown> }
  | { output_type: "error"; ename: string; evalue: string };

export interface Run {
  run_id?: string;
  model?: string;
  tools: string[];
  steps: Step[];
  rounds: number;
  /** `null` while the run goes on. */
  stop_reason: AssistantMessage["stop_reason"] | "max_iterations" | null;
  error: string | null;
  queued: UserMessage[];
  undelivered: UserMessage[];
  /** The nested runs, in order, by the id of the call that they ran under. */
  children: Record<string, Run[]>;
  /** The first and the last of rounds that the notebook file does not have, where it would have grown too large. */
  left_out?: [first: number, last: number][];
  started?: number | null;
  ended?: number | null;
}
