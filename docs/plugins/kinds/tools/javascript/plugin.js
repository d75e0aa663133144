// Counts the days between two dates, which models often get wrong.

import { Toolbox, invalid, lifecycle as exported } from "hermes-plugin";

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

export const lifecycle = exported();

/** Midnight of a date. The model reads the error, so it says what to write. */
function midnight(date) {
  const time = new Date(`${date}T00:00:00Z`);
  if (!/^\d{4}-\d\d-\d\d$/.test(date) || Number.isNaN(time.getTime()) || time.toISOString().slice(0, 10) !== date) {
    throw invalid(`\`${date}\` is not a date such as 2026-02-28`);
  }
  return time;
}

const toolbox = new Toolbox("calendar").tool({
  name: "days_between",
  description:
    "Counts the days from one date to another, and names both weekdays. Use it instead of counting yourself.",
  parameters: {
    from: { type: "string", description: "The first date, as YYYY-MM-DD." },
    to: { type: "string", description: "The second date, as YYYY-MM-DD." },
  },
  required: ["from", "to"],
  effect: "reads",
  parallel: true,
  run({ from, to }) {
    const [first, second] = [midnight(from), midnight(to)];
    const weekday = (time) => WEEKDAYS[time.getUTCDay()];
    const days = (second - first) / 86_400_000;
    return `${days} days from ${weekday(first)}, ${from} to ${weekday(second)}, ${to}`;
  },
});

export const tools = toolbox.exports();
