import type { ErrorRequestHandler } from 'express';
import { describeThrown, toHttpError } from '../../http/errors';
import { html } from '../../http/html';
import type { Log } from '../../http/log';
import { layout } from './layout';

const TITLES: Readonly<Record<number, string>> = {
  403: 'Refused',
  404: 'There is nothing here',
  405: 'Not possible here',
  409: 'Not possible now',
};

/** Answers whatever goes wrong below /dashboard as a page. */
export function showError(log: Log): ErrorRequestHandler {
  return (thrown: unknown, _request, response, next) => {
    if (response.headersSent) {
      next(thrown);
      return;
    }
    const { status, problems, headers, cause } = toHttpError(thrown);
    const { requestId } = response.locals;
    if (status >= 500) log.error('page failed', { requestId, status, cause: describeThrown(cause) });
    const content = html`<section class="card">
      ${problems.map(({ description }) => html`<p>${description}</p>`)}
      <p class="muted">Status ${status} · request ${requestId}</p>
      <p><a class="button" href="/dashboard">To the overview</a></p>
    </section>`;
    const title = TITLES[status] ?? (status >= 500 ? 'The dashboard failed' : 'This was not understood');
    response
      .status(status)
      .set(headers)
      .send(layout({ title, section: undefined, content }));
  };
}
