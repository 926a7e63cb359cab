/** A field of a resource that lists can be filtered and sorted by. */
export type Field<T> =
  | { readonly kind: 'text'; readonly of: (item: T) => string | readonly string[] | undefined }
  | { readonly kind: 'number'; readonly of: (item: T) => number | undefined }
  | { readonly kind: 'time'; readonly of: (item: T) => Date | undefined };

/** The fields of a resource by their name on the wire. */
export interface Fields<T> {
  readonly named: Readonly<Record<string, Field<T>>>;
  /** Fields that have a name of the client's own behind a prefix, such as custom parameters. */
  readonly prefixed?: { readonly prefix: string; readonly field: (name: string) => Field<T> };
}

/** The field of this name, with or without `metadata.` before it. */
export function fieldOf<T>({ named, prefixed }: Fields<T>, name: string): Field<T> | undefined {
  const plain = name.replace(/^metadata\./, '');
  if (Object.hasOwn(named, plain)) return named[plain];
  if (!prefixed || !plain.startsWith(prefixed.prefix)) return undefined;
  return prefixed.field(plain.slice(prefixed.prefix.length));
}

/** The names, for a person who wrote another one. */
export function namesOf<T>({ named, prefixed }: Fields<T>): string {
  return [...Object.keys(named), ...(prefixed ? [`${prefixed.prefix}<name>`] : [])].join(', ');
}
