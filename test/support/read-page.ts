/** The text of a page without its markup, and one space where the markup has many. */
export function textOf(page: string): string {
  return page
    .replaceAll(/<(script|style)\b.*?<\/\1>/gs, '')
    .replaceAll('<wbr>', '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&#(\d+);/g, (_entity, code) => String.fromCharCode(Number(code)))
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** The rows of a page's first table, cell by cell. */
export function rowsOf(page: string): string[][] {
  const body = /<tbody.*?<\/tbody>/s.exec(page)?.[0] ?? '';
  return [...body.matchAll(/<tr.*?<\/tr>/gs)].map(([row]) =>
    [...row.matchAll(/<td.*?<\/td>/gs)].map(([cell]) => textOf(cell)),
  );
}

/** The faults in the alert of a form. */
export function complaintsOf(page: string): string[] {
  const alert = /<div[^>]*role="alert".*?<\/div>/s.exec(page)?.[0] ?? '';
  return [...alert.matchAll(/<li>.*?<\/li>/gs)].map(([item]) => textOf(item));
}
