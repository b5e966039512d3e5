package agent

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
	"strings"
)

// Client asks a running agent over its unix socket; it never connects anywhere
// else. It may be used by several goroutines.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient makes a client of the agent at a socket. It does not connect yet.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Get asks for a path of the API and returns the answer's text. An answer
// other than 200 is an error with the text the agent gave.
func (c *Client) Get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.ask(ctx, http.MethodGet, path, query, nil)
}

// JSON asks for a path's answer as JSON and reads it into v.
func (c *Client) JSON(ctx context.Context, path string, query url.Values, v any) error {
	q := url.Values{"format": {"json"}}
	for k, vs := range query {
		q[k] = vs
	}
	b, err := c.Get(ctx, path, q)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("answer of %s to %s: %w", c.socket, path, err)
	}
	return nil
}

// Post sends v as JSON to a path and returns the answer's text.
func (c *Client) Post(ctx context.Context, path string, query url.Values, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, http.MethodPost, path, query, b)
}

// Delete removes what the query names and returns the answer's text.
func (c *Client) Delete(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.ask(ctx, http.MethodDelete, path, query, nil)
}

func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	u := url.URL{Scheme: "http", Host: "agent", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error // names the pseudo address of the request
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, fmt.Errorf("no agent answers at %s: %w", c.socket, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("answer of %s to %s: %w", c.socket, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(b)))
	}
	return b, nil
}

// Ready says whether the agent forwards: its pipeline is loaded and its ports are
// open. Whether that is what its source of objects says is not asked.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.Get(ctx, "/readyz", url.Values{"exclude": {sourceCondition}})
	return err
}
