package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/containernetworking/cni/pkg/types"
)

// ErrAway says that no agent listens at the socket.
var ErrAway = errors.New("no agent listens")

// maxReply bounds an answer, in bytes. A result with a hundred routes takes a few
// kilobytes.
const maxReply = 1 << 20

// Client asks the agent at a socket.
type Client struct {
	Socket string
}

// SendRequest sends a request and returns the answer. The error is ErrAway if no agent
// listens. If the agent refused, it is the agent's *types.Error. If the connection broke,
// its code tells the runtime to try again.
func (c *Client) SendRequest(ctx context.Context, v Verb, r *Request) (*Reply, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, Errorf(types.ErrInternal, "the request cannot be encoded", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent/cni/"+string(v), bytes.NewReader(body))
	if err != nil {
		return nil, Errorf(types.ErrInternal, "the HTTP request cannot be built", err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DialContext: c.dial, DisableKeepAlives: true}}).Do(req)
	var u *url.Error // names the pseudo address of the request
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	if err != nil {
		return nil, Errorf(types.ErrTryAgainLater, "the agent did not answer", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, Errorf(types.ErrTryAgainLater, "the agent's answer broke off", err)
	}
	return parseReply(resp.StatusCode, text)
}

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
}

// parseReply reads an answer by its HTTP status.
func parseReply(status int, text []byte) (*Reply, error) {
	switch status {
	case http.StatusOK:
		reply := &Reply{}
		if err := json.Unmarshal(text, reply); err != nil {
			return nil, Errorf(types.ErrInternal, "the agent's answer cannot be read", err)
		}
		return reply, nil
	case http.StatusUnprocessableEntity:
		said := &types.Error{}
		if err := json.Unmarshal(text, said); err != nil || said.Code == 0 {
			return nil, Errorf(types.ErrInternal, "the agent's error cannot be read", err)
		}
		return nil, said
	}
	return nil, types.NewError(types.ErrInternal, "the agent does not know the request", string(bytes.TrimSpace(text)))
}
