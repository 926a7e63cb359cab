// A browser on a busy machine now and then loses an event. Such a test gets one more try; the log keeps the first error.
jest.retryTimes(1, { logErrorsBeforeRetry: true });
