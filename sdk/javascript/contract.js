// Shapes of the contract, which the build reads from `wit/`: what each function of an interface returns, as data.
//
// A shape is the name of a simple type, or `{ list }`, `{ option }`, `{ tuple }`, `{ result }`, or `{ ref }`: the place of a record, a variant or
// an enum in the table.

import { Parser, camel, pascal } from "./types.js";

/** The interfaces of these texts, by their short names, and the worlds that export them. */
export function readContract(files, worlds) {
  const contract = { interfaces: {}, types: {}, worlds: {} };
  for (const file of files) new Reader(file, contract).file();
  for (const [, name, body] of worlds.matchAll(/^world ([\w-]+) \{([^}]*)\}/gm)) {
    contract.worlds[name] = {
      includes: Array.from(body.matchAll(/include ([\w-]+);/g), ([, other]) => other),
      exports: Array.from(body.matchAll(/export ([\w:/-]+)@/g), ([, id]) => id),
    };
  }
  return contract;
}

/** The interfaces that a world exports, those of the worlds that it includes among them. */
export function exportsOf(contract, world) {
  const { includes, exports } = contract.worlds[world] ?? { includes: [], exports: [] };
  return [...new Set([...includes.flatMap((other) => exportsOf(contract, other)), ...exports])];
}

/** The part of a contract that the component needs: these interfaces, and the types that they return. */
export function partOf(contract, ids) {
  const part = { interfaces: {}, types: {} };
  const add = (shape) => {
    if (!shape || typeof shape === "string") return;
    if (!shape.ref) return Object.values(shape).flat().forEach(add);
    if (part.types[shape.ref]) return;
    const type = (part.types[shape.ref] = contract.types[shape.ref]);
    Object.values(type.record ?? type.variant ?? {}).forEach(add);
  };
  for (const id of ids) {
    part.interfaces[id] = contract.interfaces[id];
    Object.values(contract.interfaces[id].functions).forEach(({ result }) => add(result));
  }
  add({ ref: "hermes:types/types#error" });
  return part;
}

class Reader extends Parser {
  constructor(text, contract) {
    super(text);
    this.contract = contract;
    this.id = "";
  }

  body() {
    const id = this.token(-1);
    this.id = `${this.name}/${id}`;
    this.aliases = {};
    this.contract.interfaces[this.id] = { name: camel(id), version: this.version, functions: {} };
    return super.body();
  }

  token(back) {
    return this.tokens[this.at + back];
  }

  use() {
    const [path] = this.next().split("@");
    const place = path.includes(":") ? path : `${this.name}/${path}`;
    for (const name of this.list("{", "}", () => this.next())) this.aliases[name] = { ref: `${place.replace(/\.$/, "")}#${name}` };
    this.next(";");
    return "";
  }

  keep(name, type) {
    this.contract.types[`${this.id}#${name}`] = { name: pascal(name), ...type };
    return "";
  }

  alias() {
    const name = this.next();
    this.next("=");
    this.keep(name, { alias: this.type() });
    this.next(";");
    return "";
  }

  record() {
    const name = this.next();
    const fields = this.list("{", "}", () => {
      this.docs();
      const field = camel(this.next());
      this.next(":");
      return [field, this.type()];
    });
    return this.keep(name, { record: Object.fromEntries(fields) });
  }

  variant() {
    const name = this.next();
    const cases = this.list("{", "}", () => {
      this.docs();
      const tag = this.next();
      const value = this.passes("(") ? this.type() : null;
      if (value) this.next(")");
      return [tag, value];
    });
    return this.keep(name, { variant: Object.fromEntries(cases) });
  }

  enumeration() {
    const name = this.next();
    return this.keep(name, { enum: this.list("{", "}", () => (this.docs(), this.next())) });
  }

  resource() {
    this.keep(this.token(0), { resource: true });
    return super.resource();
  }

  func(name) {
    this.next(":");
    this.next("func");
    const parameters = this.list("(", ")", () => {
      const parameter = camel(this.next());
      this.next(":");
      this.type();
      return parameter;
    });
    const result = this.passes("->") ? this.type(true) : null;
    this.next(";");
    this.contract.interfaces[this.id].functions[camel(name)] = { parameters, result };
    return "";
  }

  type(isResult = false) {
    const name = this.next();
    if (name === "_") return null;
    if (this.peek() !== "<") return SIMPLE.has(name) ? name : (this.aliases[name] ?? { ref: `${this.id}#${name}` });
    const inner = this.list("<", ">", () => this.type());
    // A function throws the error.
    if (name === "result") return isResult ? inner[0] : { result: inner };
    if (name === "list" && inner[0] === "u8") return "bytes";
    return { [name]: name === "tuple" ? inner : inner[0] };
  }
}

const SIMPLE = new Set(["bool", "string", "char", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"]);
