package support

import (
	"context"
	"io"
	"strings"
)

// Write writes the archive (tar, gzip) to w. The file errors.txt in it lists the missing items, and
// Write returns their number. The error is w's.
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
