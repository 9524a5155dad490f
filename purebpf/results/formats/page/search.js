// The search field: text as it stands, or a regular expression.

// A test of functions, null for no text; throws SyntaxError for a wrong expression. Small letters
// find large ones too.
function searchTest(text, isExpression) {
  if (!text) return null;
  const exact = /\p{Lu}/u.test(text);
  if (isExpression) {
    const wanted = new RegExp(text, exact ? "u" : "iu");
    return (entry) => spellings(entry).some((text) => wanted.test(text));
  }
  const fold = exact ? (name) => name : (name) => name.toLowerCase();
  const wanted = fold(text);
  return (entry) => spellings(entry).some((text) => fold(text).includes(wanted));
}

function spellings({ name, short, module }) {
  return [name, short, module].filter(Boolean);
}

// The functions that were found and have weight, the heaviest first: [{ frame, total }].
function searchHits(model, matched) {
  const keys = Int32Array.from(model.functions, (_, i) => i);
  const { total, totalBefore } = model.byFunction(keys, keys.length);
  const hits = [];
  matched.forEach((is, frame) => {
    if (is && (total[frame] || totalBefore[frame])) hits.push({ frame, total: total[frame] });
  });
  return hits.sort((a, b) => b.total - a.total || a.frame - b.frame);
}
