jest.retryTimes(1, { logErrorsBeforeRetry: true });
