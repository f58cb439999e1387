// Edits of a text. Places are counted in code points, as Python counts them; `span` has segment, start and end.

/** The strings of a text: one, or those of a pair. */
export function stringsOf(text) {
  return Array.isArray(text) ? text : [text];
}

/** The text with another string in the place of one of its strings. */
export function withString(text, segment, string) {
  return Array.isArray(text) ? text.map((old, place) => (place === segment ? string : old)) : string;
}

/** The text without a span, and without one of the two spaces that would meet where it was. */
export function withoutSpan(text, span) {
  const [before, , after] = cut(text, span);
  const meet = (before === "" || /\s$/.test(before)) && /^\s/.test(after);
  const rest = meet ? before + after.slice(1) : before + after;
  return withString(text, span.segment, after === "" ? rest.trimEnd() : rest);
}

/** The text with other words in the place of a span. */
export function exchanged(text, span, words) {
  const [before, , after] = cut(text, span);
  return withString(text, span.segment, before + words + after);
}

/** The text with words before or after a span, a space between them if the text has spaces. */
export function added(text, span, words, where) {
  const [before, own, after] = cut(text, span);
  const gap = /\s/.test(stringsOf(text)[span.segment]) || before + after === "" ? " " : "";
  const grown = where === "before" ? words + gap + own : own + gap + words;
  return withString(text, span.segment, before + grown + after);
}

function cut(text, span) {
  const points = Array.from(stringsOf(text)[span.segment]);
  const parts = [points.slice(0, span.start), points.slice(span.start, span.end), points.slice(span.end)];
  return parts.map((part) => part.join(""));
}
