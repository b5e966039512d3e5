package support

import (
	"context"
	"io"
	"strings"
)

// Write writes the archive (tar, gzip) to w. The file errors.txt lists what is missing, and
// Write returns how many items that are. The error is w's.
func Write(ctx context.Context, w io.Writer, o Options) (missing int, err error) {
	c := &collection{o: o}
	c.addAnswers(ctx)
	c.read("config.yaml", o.Config, withoutSecrets)
	c.read("agent.log", o.Log, lastOfLog)
	c.versions()
	missing = len(c.errors)
	c.addFile("errors.txt", []byte(strings.Join(append(c.errors, ""), "\n")))
	if o.Redact {
		if err := c.redact(); err != nil {
			return missing, err
		}
	}
	return missing, c.write(w)
}
