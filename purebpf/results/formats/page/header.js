// The first line: what was measured, and whether it is whole. The rest is folded behind it.

function describeRun(head) {
  const { facts } = head;
  document.getElementById("title").textContent = document.getElementById("title").title = head.title || "Profile";
  document.getElementById("brief").textContent = [...facts.brief, ...shares(head)].join(" · ");
  const after = quality(head);
  const earlier = head.earlier && quality({ ...head.earlier, unit: head.unit });
  const complete = after.complete && (!earlier || earlier.complete);
  const lines = [...(earlier ? [`before: ${earlier.lines[0]}`, ...earlier.lines.slice(1)] : []), `${earlier ? "after: " : ""}${after.lines[0]}`, ...after.lines.slice(1)];
  const verdict = document.getElementById("verdict");
  verdict.textContent = complete ? "nothing lost" : "incomplete";
  verdict.className = `chip ${complete ? "good" : "bad"}`;
  const list = document.createElement("ul");
  for (const line of lines.slice(1)) list.appendChild(document.createElement("li")).textContent = line;
  const first = document.createElement("p");
  first.textContent = lines[0];
  document.getElementById("quality").replaceChildren(first, ...(lines.length > 1 ? [list] : []));
  const shown = [...facts.rows];
  if (facts.started_s) shown.unshift(["started", new Date(1000 * facts.started_s).toLocaleString()]);
  document.getElementById("facts").replaceChildren(...shown.flatMap(([name, text]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: text }),
  ]));
}

function shares({ loss, stacks }) {
  const unnamed = loss.unknown.percent + loss.unknown.unnamed_percent; // of no function, or of one without a symbol
  const parts = [`${unnamed.toFixed(unnamed < 10 ? 1 : 0)}% of frames unnamed`];
  if (stacks?.guessed_percent >= 0.1) parts.unshift(`${stacks.guessed_percent.toFixed(1)}% guessed in part`);
  if (stacks) parts.unshift(`${Math.floor(10 * stacks.whole_percent) / 10}% of stacks whole`); // 99.96% is not all
  return parts;
}

// What the numbers do not include, in sentences; the first one is enough to know.
function quality({ loss, total, unit, hints, stacks }) {
  const lost = loss.causes.filter((cause) => cause.lost && !cause.is_note);
  const missed = loss.missed > loss.tolerance;
  const complete = !missed && !lost.length && !stacks?.lost;
  const unknown = `${loss.unknown.percent.toFixed(1)}% of frames have no name`;
  const sum = unit === "ns" ? `${(total / 1e9).toFixed(3)} s` : `${total} ${unit}`;
  const lines = [`${sum}. ${complete ? "Nothing was lost" : "Incomplete"}; ${unknown}.`];
  if (missed) lines.push(`missed: ${loss.missed} of ${loss.expected} never came`);
  if (stacks?.lost) lines.push(`lost: ${stacks.lost}`);
  for (const cause of lost) lines.push(`${cause.name}: ${cause.lost}. ${cause.what}`);
  for (const { reason, module, percent } of loss.unknown.reasons) {
    lines.push(`unknown, ${percent.toFixed(1)}%: ${reason}${module ? ` [${module}]` : ""}`);
  }
  for (const { reason, percent } of stacks?.cuts ?? []) {
    lines.push(`stacks without their roots, ${percent.toFixed(1)}%: ${reason}`);
  }
  for (const hint of hints ?? []) lines.push(`hint: ${hint}`);
  return { lines, complete };
}
