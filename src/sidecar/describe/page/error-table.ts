import { type Content, type Html, html } from '../../../http/html';
import type { ApiResponse } from '../document';
import { inline } from './prose';

export type ErrorFilter = (status: string, code: string) => boolean;

/** One row for each error code of the answers, with the sentence of its example. */
export function errorRows(
  responses: readonly (readonly [status: string, response: ApiResponse])[],
  isShown: ErrorFilter,
): Html[] {
  return responses.flatMap(([status, { content }]) =>
    Object.entries(content?.['application/json']?.examples ?? {})
      .filter(([code]) => Number(status) >= 400 && isShown(status, code))
      .map(([code, { summary, value }]) => errorRow(status, code, summary, value)),
  );
}

export function errorTable(caption: string, rows: readonly Html[]): Content {
  return (
    rows.length > 0 &&
    html`<table role="table" class="names errors">
<caption class="unseen">${caption}</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Error</th><th role="columnheader" scope="col">When, and what the answer says</th></tr></thead>
<tbody role="rowgroup">${rows}</tbody>
</table>`
  );
}

function errorRow(status: string, code: string, when: string, value: unknown): Html {
  const [first] = Reflect.get(Object(value), 'errors') ?? [];
  return html`<tr role="row"><th role="rowheader" scope="row"><span class="status status-${status.slice(0, 1)}">${status}</span> <code>${code}</code></th><td role="cell"><p>${inline(when)}</p><p class="says">${String(first?.description ?? '')}</p></td></tr>`;
}
