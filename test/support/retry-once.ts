// A browser, or a packager and its encoder, now and then lose an event or a second on a busy machine. Such a test gets one
// more try; the log keeps the first error.
jest.retryTimes(1, { logErrorsBeforeRetry: true });
