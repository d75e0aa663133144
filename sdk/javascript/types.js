// TypeScript declarations of the contract, for editors and type checkers: `declarations(texts)` reads files of `wit/`.

const TYPES = {
  bool: "boolean",
  string: "string",
  char: "string",
  ...Object.fromEntries(["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64"].map((name) => [name, "number"])),
};
export const camel = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
export const pascal = (name) => camel(name).replace(/^./, (letter) => letter.toUpperCase());

/** Declares a module for each interface in these texts. */
export function declarations(texts) {
  return texts.map((text) => new Parser(text).file()).join("");
}

/** Reads a file of the contract. Its methods return what they read as TypeScript. */
export class Parser {
  constructor(text) {
    this.tokens = text.match(/\/\/\/[^\n]*|\/\/[^\n]*|[\w%@./:-]*[\w%]|->|[{}()<>,;=_:]/g) ?? [];
    this.tokens = this.tokens.filter((token) => token.startsWith("///") || !token.startsWith("//"));
    this.tokens = this.tokens.flatMap((token) => (/^[\w-]+:$/.test(token) ? [token.slice(0, -1), ":"] : [token]));
    this.at = 0;
  }

  peek() {
    return this.tokens[this.at];
  }

  next(expected) {
    const token = this.tokens[this.at++];
    if (expected && token !== expected) throw new Error(`wit: expected \`${expected}\`, found \`${token}\``);
    return token;
  }

  /** Whether the next token is this one, which is then passed. */
  passes(token) {
    if (this.peek() !== token) return false;
    this.at++;
    return true;
  }

  docs() {
    const lines = [];
    while (this.peek()?.startsWith("///")) lines.push(this.next().slice(3).trimEnd());
    return lines;
  }

  file() {
    let out = "";
    let name = "";
    while (this.at < this.tokens.length) {
      const docs = this.docs();
      const word = this.next();
      if (word === "package") {
        name = this.next();
        [this.name, this.version] = name.split("@");
        this.next(";");
      } else if (word === "interface") {
        const [id, version] = name.split("@");
        out += comment(docs, "") + `declare module "${id}/${this.next()}@${version}" {\n${this.body()}}\n\n`;
      } else {
        this.skipBlock();
      }
    }
    return out;
  }

  skipBlock() {
    let depth = 0;
    while (this.at < this.tokens.length) {
      const token = this.next();
      if (token === "{") depth++;
      if (token === "}" && --depth === 0) return;
      if (token === ";" && depth === 0) return;
    }
  }

  /** The items of an interface. */
  body() {
    this.next("{");
    let types = "";
    let functions = "";
    while (!this.passes("}")) {
      const docs = comment(this.docs(), "  ");
      const word = this.next();
      if (word === "use") types += this.use();
      else if (word === "type") types += docs + this.alias();
      else if (word === "record") types += docs + this.record();
      else if (word === "variant") types += docs + this.variant();
      else if (word === "enum") types += docs + this.enumeration();
      else if (word === "resource") types += docs + this.resource();
      else functions += docs.replaceAll("  ", "    ") + this.func(word);
    }
    return `${types}  const functions: {\n${functions}  };\n  export default functions;\n`;
  }

  use() {
    const [path, version = this.version] = this.next().split("@");
    const names = this.list("{", "}", () => pascal(this.next()));
    this.next(";");
    if (!path.includes(":")) return this.imported(names, `${this.name}/${path.replace(/\.$/, "")}`, version);
    return this.imported(names, path, version);
  }

  imported(names, path, version) {
    return `  import type { ${names.join(", ")} } from "${path}@${version}";\n  export type { ${names.join(", ")} };\n`;
  }

  alias() {
    const name = pascal(this.next());
    this.next("=");
    const type = this.type();
    this.next(";");
    return `  export type ${name} = ${type};\n`;
  }

  record() {
    const name = pascal(this.next());
    const fields = this.list("{", "}", () => {
      const docs = comment(this.docs(), "    ");
      const field = camel(this.next());
      this.next(":");
      return `${docs}    ${field}: ${this.type()};\n`;
    });
    return `  export interface ${name} {\n${fields.join("")}  }\n`;
  }

  variant() {
    const name = pascal(this.next());
    const cases = this.list("{", "}", () => {
      const docs = comment(this.docs(), "    ");
      const tag = this.next();
      const value = this.passes("(") ? this.type() : null;
      if (value) this.next(")");
      return `${docs}    | { tag: "${tag}"${value ? `; val: ${value}` : ""} }\n`;
    });
    return `  export type ${name} =\n${cases.join("").trimEnd()};\n`;
  }

  enumeration() {
    const name = pascal(this.next());
    const cases = this.list("{", "}", () => (this.docs(), `"${this.next()}"`));
    return `  export type ${name} = ${cases.join(" | ")};\n`;
  }

  /** A handle with methods. */
  resource() {
    const name = pascal(this.next());
    const methods = [];
    this.next("{");
    while (!this.passes("}")) {
      const docs = comment(this.docs(), "    ");
      methods.push(docs + this.func(this.next()));
    }
    return `  export interface ${name} {\n${methods.join("")}    [Symbol.dispose](): void;\n  }\n`;
  }

  func(name) {
    this.next(":");
    this.next("func");
    const parameters = this.list("(", ")", () => {
      const parameter = camel(this.next());
      this.next(":");
      return `${parameter}: ${this.type()}`;
    });
    const result = this.passes("->") ? this.type(true) : "void";
    this.next(";");
    return `    ${camel(name)}(${parameters.join(", ")}): ${result};\n`;
  }

  list(open, close, item) {
    this.next(open);
    const found = [];
    while (!this.passes(close)) {
      found.push(item());
      this.passes(",");
    }
    return found;
  }

  type(isResult = false) {
    const name = this.next();
    if (TYPES[name]) return TYPES[name];
    if (name === "_") return "void";
    if (this.peek() !== "<") return pascal(name);
    const isBytes = this.tokens[this.at + 1] === "u8";
    const inner = this.list("<", ">", () => this.type());
    switch (name) {
      case "list":
        return isBytes ? "Uint8Array" : `${/[|]/.test(inner[0]) ? `(${inner[0]})` : inner[0]}[]`;
      case "option":
        return `${inner[0]} | null`;
      case "tuple":
        return `[${inner.join(", ")}]`;
      case "result":
        // A function throws the error.
        if (isResult) return inner[0];
        return `{ tag: "ok"; val: ${inner[0]} } | { tag: "err"; val: ${inner[1] ?? "void"} }`;
      default:
        throw new Error(`wit: unknown type \`${name}\``);
    }
  }
}

function comment(lines, indent) {
  if (!lines.length) return "";
  return `${indent}/**\n${lines.map((line) => `${indent} *${line.replaceAll("*/", "*\\/")}\n`).join("")}${indent} */\n`;
}
