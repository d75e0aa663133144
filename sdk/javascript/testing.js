// Lets `node --test` load a plugin: `node --import hermes-plugin/testing.js --test`. The imports of the host exist only inside Hermes, so here
// each of them throws, unless a test gives its own: `fake("hermes:storage/documents", { read: () => null })`.

import { register } from "node:module";

const fakes = (globalThis.hermesFakes ??= new Map());

/** Answers the functions of an interface in this test. */
export function fake(name, functions) {
  fakes.set(name, functions);
}

const hooks = `
  export async function resolve(specifier, context, next) {
    if (!specifier.startsWith("hermes:")) return next(specifier, context);
    const name = JSON.stringify(specifier.split("@")[0]);
    const source = \`
      const missing = (key) => () => {
        throw new Error("\${specifier.replaceAll('"', "")} " + key + " exists only inside Hermes; give a fake");
      };
      const found = (_, key) => globalThis.hermesFakes?.get(\${name})?.[key] ?? missing(String(key));
      export default new Proxy({}, { get: found });
    \`;
    return { url: "data:text/javascript," + encodeURIComponent(source), shortCircuit: true };
  }
`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
