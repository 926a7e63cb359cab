import { type Content, type Html, html } from '../../../http/html';
import { inline } from './prose';
import type { Field } from './schema-fields';

/** A row of a table that tells what one name stands for. */
export interface Row {
  readonly name: string;
  readonly depth?: number;
  /** Beside the name: its type, and whether it must be there. */
  readonly notes: readonly Content[];
  readonly text: Content;
}

/** A table of names. The roles stay when narrow screens show it as a list. */
export function nameTable(caption: string, head: string, rows: readonly Row[]): Html {
  return html`<table role="table" class="names">
<caption class="unseen">${caption}</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">${head}</th><th role="columnheader" scope="col">What it is</th></tr></thead>
<tbody role="rowgroup">${rows.map(
    ({ name, depth = 0, notes, text }) =>
      html`<tr role="row"><th role="rowheader" scope="row" class="depth-${Math.min(depth, 3)}"><code>${name}</code>${notes.map((note) => html`<span class="note">${note}</span>`)}</th><td role="cell">${text}</td></tr>`,
  )}</tbody>
</table>`;
}

/** Of a body that is sent, the fields are marked that must be there; of an answer, those that may be missing. */
export function fieldTable(caption: string, fields: readonly Field[], way: 'sent' | 'answered'): Html {
  const mark = (isRequired: boolean) => {
    if (way === 'sent') return isRequired ? [required()] : [];
    return isRequired ? [] : ['not always'];
  };
  const rows = fields.map(({ name, depth, type, isRequired, description, values }) => ({
    name,
    depth,
    notes: [type, ...mark(isRequired)],
    text: described(description, values),
  }));
  return nameTable(caption, 'Field', rows);
}

export function required(): Html {
  return html`<strong class="required">needed</strong>`;
}

/** A description, and the values to choose from. */
export function described(description: string, values: readonly string[], more?: Content): Html {
  const choice =
    values.length > 0 && html`<p class="values">${values.map((value) => html`<code>${value}</code> `)}</p>`;
  return html`${description !== '' && html`<p>${inline(description)}</p>`}${choice}${more}`;
}
