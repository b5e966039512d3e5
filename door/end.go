package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// A controller ends the switch. The request is an HTTP upgrade. After it neither side sends a
// byte, and the connection ends with the process.

// endProtocol is the upgrade's protocol.
const endProtocol = "antrail-end/1"

// endTime is how long a switch may take to end.
const endTime = 30 * time.Second

// AnswerEnd answers POST /v1/end. If ok, the switch must end. It leaves t open, so that
// the connection ends with the process.
func (s *Server) AnswerEnd(w http.ResponseWriter, r *http.Request) (t MessageConn, ok bool) {
	return s.upgradeTo(endProtocol, w, r)
}

// End ends the switch, and returns once its process has ended. The error is nil if no switch
// answers. Entries, connections and the devices of ports stay.
func (c *Client) End(ctx context.Context) error {
	t, err := c.upgradeTo(endProtocol, "/v1/end")
	if away := (*AwayError)(nil); errors.As(err, &away) {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.Close()
	defer context.AfterFunc(ctx, func() { t.Close() })()
	if err := t.SetDeadline(time.Now().Add(endTime)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, t); err != nil {
		return fmt.Errorf("the switch at %s does not end: %w", c.socket, err)
	}
	return nil
}
