export type Content = string | number | Html | undefined | false | readonly Content[];

/** Safe to send: only `html` makes it. */
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

/** Values are escaped unless a template made them. Attribute values must stand in double quotes. */
export function html(pieces: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Markup(pieces.reduce((text, piece, place) => `${text}${render(values[place - 1])}${piece}`));
}

function render(content: Content): string {
  if (content === undefined || content === false) return '';
  if (content instanceof Markup) return content.toString();
  if (typeof content === 'object') return content.map(render).join('');
  return String(content).replaceAll(/[&<>"'`]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
