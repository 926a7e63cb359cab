export interface Page {
  /** From 1. */
  readonly page: number;
  readonly pageLength: number;
  /** How many there are on all pages. */
  readonly total: number;
}

/** The envelope of every v2 list. */
export function renderPage(
  name: string,
  { page, pageLength, total }: Page,
  items: readonly unknown[],
): object {
  return { page, page_length: pageLength, total, [name]: items };
}
