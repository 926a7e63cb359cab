import { type Content, type Html, html } from '../../../http/html';
import { API_KEY_VARIABLE, URL_VARIABLE } from '../curl';
import type { OpenApiDocument, Operation } from '../document';
import { codeBlock } from './code-block';
import { type ErrorFilter, errorRows, errorTable } from './error-table';
import { prose } from './prose';

const FIRST_REQUEST = `export ${URL_VARIABLE}=http://127.0.0.1:9000
export ${API_KEY_VARIABLE}=...

curl -sS "$${URL_VARIABLE}/readyz"`;

/** What the service is, and how to begin. */
export function introduction({ info, components }: OpenApiDocument): Html {
  return html`<section class="start" id="start" aria-labelledby="start-title">
<div class="text">
<p class="kicker">API of ${info.title} ${info.version}</p>
<h1 id="start-title">${info.summary}</h1>
${prose(info.description)}
<h2>The API key</h2>
${Object.values(components.securitySchemes).map(({ description }) => prose(description))}
</div>
<div class="examples">
${codeBlock('For all examples of this page', FIRST_REQUEST, 'shell')}
<p class="aside">Key material in the examples is that of published samples. This page as a document for programs: <a href="openapi.json">openapi.json</a>.</p>
</div>
</section>`;
}

/** Finds the errors that every operation has that needs an API key: they are told once for all. */
export function sharedErrors(operations: readonly Operation[]): ErrorFilter {
  const guarded = operations.filter(({ security }) => security.length > 0);
  return (status, code) => guarded.every((operation) => hasError(operation, status, code));
}

function hasError({ responses }: Operation, status: string, code: string): boolean {
  return code in (responses[status]?.content?.['application/json']?.examples ?? {});
}

/** The errors that any request may meet. */
export function errorsSection({ components }: OpenApiDocument, operations: readonly Operation[]): Content {
  const one = operations.find(({ security }) => security.length > 0);
  const { NoSuchPath, NoSuchMethod } = components.responses;
  const isShared = sharedErrors(operations);
  const responses = [
    ...Object.entries(one?.responses ?? {}),
    ['404', NoSuchPath],
    ['405', NoSuchMethod],
  ] as const;
  const sorted = responses.toSorted(([status], [other]) => Number(status) - Number(other));
  const rows = errorRows(
    sorted,
    (status, code) => isShared(status, code) || code === 'not_found' || code === 'method_not_allowed',
  );
  return html`<section class="group" id="errors" aria-labelledby="errors-title">
<div class="group-head"><h2 id="errors-title">Errors</h2><p>Any request may meet these; the others stand with their operations.</p></div>
<div class="alone">${errorTable('Errors of any request', rows)}</div>
</section>`;
}
