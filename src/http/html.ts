/** A value in a template: text, which is escaped, markup of other templates, and nothing (`undefined`, `false`). */
export type Content = string | number | Html | undefined | false | readonly Content[];

/** Markup that is safe to send: only `html` makes it. */
class Markup {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

export type Html = Markup;

/**
 * Makes markup of a template. Values are escaped unless a template made them, so that no foreign text becomes
 * markup. Attribute values stand in double quotes in every template.
 */
export function html(pieces: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Markup(pieces.reduce((text, piece, place) => `${text}${render(values[place - 1])}${piece}`));
}

function render(content: Content): string {
  if (content === undefined || content === false) return '';
  if (content instanceof Markup) return content.toString();
  if (typeof content === 'object') return content.map(render).join('');
  return String(content).replaceAll(/[&<>"'`]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
