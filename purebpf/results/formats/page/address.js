// What is chosen, in the part of the address behind #, so that a link shows what one sees.
// Functions stand there by number: a saved page has the same ones each time it is opened.

const DEFAULTS = {
  q: "", expression: "", tab: "graph", turned: "", order: "", up: "", colour: "", zoom: "", sandwich: "",
  span: "", hide: "", only: "", fold: "", without: "", widths: "", scale: "", by: "", sort: "", columns: "",
};
const LABEL = "in."; // begins the name of a filter by label

const ADDRESS_MS = 150; // browsers complain about 200 changes in half a minute, which typing is

let addressTimer;

function writeAddress(state, chosen) {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => replaceAddress(state, chosen), ADDRESS_MS);
}

function replaceAddress(state, chosen) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (String(value) !== DEFAULTS[name]) found.set(name, value);
  }
  for (const [kind, value] of Object.entries(chosen)) if (value) found.set(LABEL + kind, value);
  const text = found.toString();
  if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

// { state, chosen }; names that nothing knows are left out.
function readAddress() {
  const state = { ...DEFAULTS };
  const chosen = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name in DEFAULTS) state[name] = value;
    else if (name.startsWith(LABEL)) chosen[name.slice(LABEL.length)] = value;
  }
  return { state, chosen };
}

// "3.14" to [3, 14]; what is no number of a function is left out.
function numbersOf(text, below) {
  return text.split(".").filter(Boolean).map(Number).filter((each) => Number.isInteger(each) && each >= 0 && each < below);
}
