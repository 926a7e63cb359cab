import { STATUS_CODES } from 'node:http';
import { type Content, type Html, html } from '../../../http/html';
import type { ApiResponse, JsonSchema, Method, OpenApiDocument, Operation, Parameter } from '../document';
import { type ErrorFilter, errorRows, errorTable } from './error-table';
import { exampleBlocks } from './example-blocks';
import { described, fieldTable, nameTable, required } from './field-table';
import { inline, prose } from './prose';
import { shapesOf, typeOf, valuesOf } from './schema-fields';

/** An operation with where it is. */
export interface Placed {
  readonly path: string;
  readonly method: Method;
  readonly operation: Operation;
}

/** What an operation does on the left, its examples on the right. `isOwn` finds the errors that stand with it. */
export function operationSection(
  { path, method, operation }: Placed,
  document: OpenApiDocument,
  isOwn: ErrorFilter,
): Html {
  const { operationId, summary, description, security, requestBody, responses } = operation;
  const body = Object.entries(requestBody?.content ?? {});
  return html`<section class="operation" id="${operationId}" aria-labelledby="${operationId}-title">
<div class="text">
<h3 id="${operationId}-title"><a href="#${operationId}">${summary}</a></h3>
<p class="route">${methodBadge(method)} <code>${path}</code>${security.length === 0 && html`<span class="open">no API key</span>`}</p>
${prose(description)}
${parameterTables(operation, document)}
${body.map(([type, { schema }]) => html`<h4>Body <span class="type">${type}</span></h4>${shapes(`Fields of the body of ${summary}`, schema, document, 'sent')}`)}
<h4>Answers</h4>
${Object.entries(responses)
  .filter(([status]) => Number(status) < 400)
  .map(([status, response]) => answer(status, response, document))}
<h4>Errors</h4>
${errorTable(`Errors of ${summary}`, errorRows(Object.entries(responses), isOwn))}
<p class="besides">${security.length === 0 ? 'Those of' : 'And those of'} <a href="#errors">any request</a>${security.length === 0 && ', but for those of the API key'}.</p>
</div>
<div class="examples">${exampleBlocks(operation)}</div>
</section>`;
}

export function methodBadge(method: string): Html {
  return html`<span class="method method-${method}">${method.toUpperCase()}</span>`;
}

const PLACES = [
  ['path', 'Path', 'Parameter'],
  ['query', 'Query', 'Parameter'],
  ['header', 'Headers', 'Header'],
] as const;

function parameterTables({ summary, parameters }: Operation, document: OpenApiDocument): Content {
  return PLACES.map(([place, title, head]) => {
    const rows = parameters
      .filter((parameter) => parameter.in === place)
      .map((one) => parameterRow(one, document));
    return rows.length > 0 && html`<h4>${title}</h4>${nameTable(`${title} of ${summary}`, head, rows)}`;
  });
}

function parameterRow(
  { name, description, required: must, schema, example }: Parameter,
  document: OpenApiDocument,
) {
  const { default: preset, minimum, maximum } = schema;
  const extras = [
    minimum !== undefined &&
      maximum !== undefined &&
      html`<p class="values">From <code>${minimum}</code> to <code>${maximum}</code>.</p>`,
    preset !== undefined && html`<p class="values">Left out: <code>${String(preset)}</code>.</p>`,
    example !== undefined && html`<p class="values">Example: <code>${String(example)}</code></p>`,
  ];
  return {
    name,
    notes: [typeOf(schema, document.components.schemas), ...(must ? [required()] : [])],
    text: described(description, valuesOf(schema), extras),
  };
}

function shapes(
  caption: string,
  schema: JsonSchema,
  document: OpenApiDocument,
  way: 'sent' | 'answered',
): Content {
  const found = shapesOf(schema, document.components.schemas);
  return found.map(
    ({ title, description, fields }) => html`<div class="shape">
${found.length > 1 && title !== undefined && html`<h5>${title}</h5>`}
${description !== '' && prose(description)}
${fields.length > 0 && fieldTable([caption, title].filter(Boolean).join(': '), fields, way)}
</div>`,
  );
}

function answer(
  status: string,
  { description, headers = {}, content = {} }: ApiResponse,
  document: OpenApiDocument,
) {
  const rows = Object.entries(headers).map(([name, header]) => ({
    name,
    notes: [],
    text: html`<p>${inline(header.description)}</p>`,
  }));
  return html`<div class="answer">
<p><span class="status status-${status.slice(0, 1)}">${status} ${STATUS_CODES[status]}</span></p>
${prose(description)}
${rows.length > 0 && nameTable(`Headers of the answer ${status}`, 'Header', rows)}
${Object.entries(content).map(
  ([type, { schema }]) =>
    html`<details><summary><code>${type}</code></summary>${shapes(`Fields of the answer ${status}`, schema, document, 'answered')}</details>`,
)}
</div>`;
}
