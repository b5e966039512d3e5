package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/antrail/antrail/agent/api"
)

// Probe asks an agent's socket for a health path, /healthz or /readyz. The error says what is
// wrong. With own, the agent has to be a process that the caller can see. During a handover two
// containers share the socket, and each has to know whether its own agent answers.
func Probe(ctx context.Context, socket, path string, own bool) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return &api.NoAgentError{Socket: socket, Err: err}
	}
	defer conn.Close()
	if own {
		pid, err := listener(conn.(*net.UnixConn))
		if err != nil {
			return err
		}
		if pid == 0 {
			return fmt.Errorf("the agent at %s is another container's", socket)
		}
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	c := api.NewClientBy(socket, &http.Transport{DialContext: dial, DisableKeepAlives: true})
	_, err = c.Get(ctx, path, nil)
	return err
}
