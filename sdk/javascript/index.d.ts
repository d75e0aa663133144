// Types of the helpers. The build writes the types of the contract to `build/types`.

export type Kind =
  | "invalid-input"
  | "unavailable"
  | "denied"
  | "timeout"
  | "cancelled"
  | "conflict"
  | "exhausted"
  | "unsupported"
  | "failed";
export interface More {
  /** More specific than the kind. */
  code?: string;
  /** How long to wait before a retry can help. */
  retryAfterMs?: number | null;
}
export class PluginError extends Error {
  constructor(kind: Kind, message: string, more?: More);
  payload: { kind: { tag: Kind }; code: string; message: string; retryAfterMs: number | null; extra: [string, string][] };
}
/** The caller made a mistake. It is never retried. Of a tool, the model reads the message. */
export function invalid(message: string, more?: More): PluginError;
/** A dependency is unreachable. The host may retry. */
export function unavailable(message: string, more?: More): PluginError;
export function denied(message: string, more?: More): PluginError;
export function timeout(message: string, more?: More): PluginError;
export function cancelled(message: string, more?: More): PluginError;
/** Another writer was faster. */
export function conflict(message: string, more?: More): PluginError;
/** A limit or a budget is exceeded. */
export function exhausted(message: string, more?: More): PluginError;
export function unsupported(message: string, more?: More): PluginError;
export function failed(message: string, more?: More): PluginError;
export function kindOf(error: unknown): string | null;
export function guarded<T extends Record<string, (...given: any[]) => any>>(functions: T): T;

export interface Lifecycle {
  /** Reads the plugin's section of config.yaml. Throw `invalid` if the plugin cannot serve with it. */
  configured?(config: Record<string, unknown>): void;
  sessionStart?(session: unknown, how: { tag: string; val?: string }): void;
  sessionEnd?(how: { tag: string; val?: string }): void;
}
export function lifecycle(functions?: Lifecycle): {
  configure(config: string): void;
  sessionStart(session: unknown, how: unknown): void;
  sessionEnd(how: unknown): void;
};

export interface Schema {
  type?: string;
  description?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minLength?: number;
  minItems?: number;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  default?: unknown;
}
export function check(schema: Schema, value: any, where?: string): any;
export function jsonObject(text: string, what: string): Record<string, unknown>;

export interface Invocation {
  id: string;
  name: string;
  arguments: string;
  extra: [string, string][];
}
export interface Output {
  content: { tag: string; val: unknown }[];
  structured?: string | null;
  extra?: [string, string][];
}
export interface ToolOptions {
  name: string;
  /** The model reads it. */
  description: string;
  /** JSON Schemas by name. */
  parameters?: Record<string, Schema>;
  required?: string[];
  title?: string | null;
  /** `reads`: can be repeated. `dangerous`: the user is asked first. */
  effect?: "reads" | "writes" | "dangerous";
  parallel?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
  outputSchema?: Schema | null;
  /** Returns a text, an output, or a value that becomes JSON. */
  run(given: any, invocation: Invocation): string | Output | unknown;
}
export class Toolbox {
  constructor(toolset: string);
  toolset: string;
  tool(options: ToolOptions): this;
  catalog(): unknown[];
  call(invocation: Invocation): Output;
  exports(): { catalog(): unknown[]; call(invocation: Invocation): Output };
}
export function text(content: string, structured?: unknown): Output;
export function skills(
  folders: Record<string, string>[],
  category: string,
): { index(): unknown[]; view(name: string, path: string | null): { content: string; files: string[] } };

type Log = (text: string, fields?: Record<string, unknown>) => void;
export const log: { debug: Log; info: Log; warn: Log; error: Log };
export const documents: {
  read(name: string): string;
  update(name: string, change: (text: string) => string | null): boolean;
};
export const history: { readAll(range: { first: number; last: number }): any[] };
export const models: {
  countTokens(text: string): number;
  complete(
    task: string,
    prompt: string,
    more?: { system?: string; maxTokens?: number | null; temperature?: number | null; schema?: Schema | null },
  ): string;
};
/** A BigInt has to fit into a number. Larger integers are given as texts, with `CAST(? AS INTEGER)`. */
type SqlValue = SqlResult | bigint | boolean;
type SqlResult = null | string | number | Uint8Array;
export const sql: {
  query(statement: string, ...params: SqlValue[]): SqlResult[][];
  execute(...statements: (string | [string, ...SqlValue[]])[]): number[];
};
export interface Secret {
  secret: { name: string; prefix: string | null };
}
/** A value that the host inserts. The prefix comes before it; in a header it is `Bearer ` unless another one is given. */
export function secret(name: string, prefix?: string | null): Secret;
export function replaceSecret(name: string, value: string): void;
type Values = Record<string, string | number | Secret>;
export interface Response {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
  text(): string;
  json(): any;
  checked(): Response;
}
export function request(
  method: string,
  url: string,
  more?: {
    query?: Values;
    headers?: Values;
    body?: string | Uint8Array | null;
    form?: Values;
    json?: unknown;
    /** The places of secrets in the JSON, by JSON Pointer. */
    jsonSecrets?: Record<string, Secret>;
    timeoutMs?: number | null;
  },
): Response;
export function randomBytes(count: number): Uint8Array;
export function randomUUID(): string;
export function encode(text: string): Uint8Array;
export function decode(bytes: Uint8Array): string;
/** The most tokens that the next view may have: the `tokens` of the headers of its messages, and `summaryTokens` of each summary. */
export function room(pressure: { contextLength: number; reserve: number; fixedTokens: number; extra: [string, string][] }): number;
/** Why the host refused the last plan, for `settled`; null for every other outcome. `needed` and `room` are tokens, if the plan was too large. */
export function refusal(outcome: { tag: string; val?: any }): { code: string; message: string; needed: number | null; room: number | null } | null;
/** The tokens of a summary in a view, with the host's frame. */
export function summaryTokens(text: string): number;
