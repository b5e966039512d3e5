// Package unixctl sends commands to Open vSwitch's daemons as ovs-appctl(8) does, without a
// process for each.
package unixctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Call sends a command to the daemon behind a control socket and returns its answer, by one call
// of JSON-RPC. An error of the daemon has its words. If the daemon does not answer within the
// time-out, that is an error.
func Call(ctx context.Context, socket string, timeout time.Duration, command string, args ...string) (string, error) {
	var answer struct {
		Result string `json:"result"`
		Error  any    `json:"error"`
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	defer c.Close()
	call := map[string]any{"id": 0, "method": command, "params": append([]string{}, args...)}
	err = errors.Join(c.SetDeadline(time.Now().Add(timeout)), json.NewEncoder(c).Encode(call))
	if err == nil {
		err = json.NewDecoder(c).Decode(&answer)
	}
	if err == nil && answer.Error != nil {
		err = fmt.Errorf("%v", answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", command, strings.Join(args, " "), err)
	}
	return answer.Result, nil
}
