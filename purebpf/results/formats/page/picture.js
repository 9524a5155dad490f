// The graph as a picture: what is drawn now, with its title.

const PICTURE_TOP = 40;

// As SVG; each box has its line of text as a <title>.
function svgOf(graph, title, describe) {
  const width = graph.canvas.clientWidth;
  const height = graph.height + PICTURE_TOP;
  const ink = graph.style.dark ? "#f2f2f2" : "#111111";
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`
      + ' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
    `<rect width="100%" height="100%" fill="${graph.background}"/>`,
    `<text x="8" y="24" fill="${ink}" font-size="14">${escaped(title)}</text>`,
  ];
  graph.rows.forEach((boxes, row) => {
    const top = PICTURE_TOP + graph.top(row);
    for (const box of boxes) {
      const [left, wide] = [box.left.toFixed(2), Box.drawn(box).toFixed(2)];
      const text = graph.caption(box, 7.23);
      parts.push(
        `<g opacity="${graph.strength(box)}"><title>${escaped(describe(box.branch))}</title>`
        + `<rect x="${left}" y="${top}" width="${wide}" height="${ROW - 1}" fill="${graph.colour(box.branch)}"/>`
        + (text ? `<text x="${(box.left + 4).toFixed(2)}" y="${top + 13}" fill="${ink}">${escaped(text)}</text>` : "")
        + "</g>",
      );
    }
  });
  return `${parts.join("\n")}\n</svg>\n`;
}

// XML 1.0 has no control characters, not even as references, and no half of a pair.
function escaped(text) {
  // eslint-disable-next-line no-control-regex
  const allowed = text.toWellFormed ? text.toWellFormed() : text;
  return allowed.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "?")
    .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function pngOf(graph, title) {
  const width = graph.canvas.clientWidth;
  const canvas = document.createElement("canvas");
  canvas.width = 2 * width;
  canvas.height = 2 * (graph.height + PICTURE_TOP);
  const context = canvas.getContext("2d", { alpha: false });
  context.scale(2, 2);
  context.fillStyle = graph.background;
  context.fillRect(0, 0, width, graph.height + PICTURE_TOP);
  context.font = "14px system-ui, sans-serif";
  context.fillStyle = graph.style.dark ? "#f2f2f2" : "#111111";
  context.fillText(title, 8, 24, width - 16);
  context.translate(0, PICTURE_TOP);
  graph.paintOn(context, width);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png");
  });
}
