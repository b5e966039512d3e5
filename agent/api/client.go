package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control"
)

// Client asks a running agent over its unix socket, and never connects anywhere else. Several
// goroutines may use it.
type Client struct {
	socket string
	http   *http.Client
}

// NoAgentError says that no agent answers at a socket.
type NoAgentError struct {
	Socket string
	Err    error // of the connection
}

// Error implements error.
func (e *NoAgentError) Error() string {
	return fmt.Sprintf("no agent answers at %s: %v", e.Socket, e.Err)
}

// Unwrap is the error of the connection.
func (e *NoAgentError) Unwrap() error { return e.Err }

// Hint says what to do; "" if unknown.
func (e *NoAgentError) Hint() string {
	if s := switchBeside(e.Socket); s != "" {
		return "The switch answers without an agent: --socket " + s + " asks the switch."
	}
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return "The socket belongs to root: run this as root."
	case errors.Is(e.Err, fs.ErrNotExist):
		return "Does an agent run here? If its configuration has another socket, name it with --socket or ANTRAIL_SOCKET. --node names a Node of a lab. In a cluster: kubectl -n kube-system exec POD -- antrail ..."
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return "The agent that made the socket has ended: its log says why" + e.log() + "."
	}
	return ""
}

// log is " (FILE)" for a log beside the socket, as in a lab; "" if there is none.
func (e *NoAgentError) log() string {
	file := strings.TrimSuffix(e.Socket, ".sock") + ".log"
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return " (" + file + ")"
}

// NewClient makes a client of the agent at a socket. It does not connect yet.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return NewClientBy(socket, &http.Transport{DialContext: dial, DisableKeepAlives: true})
}

// NewClientBy makes a client with another transport, for example a pipeline in this process.
// Errors have name in place of the socket.
func NewClientBy(name string, by http.RoundTripper) *Client {
	return &Client{name, &http.Client{Transport: by}}
}

// Socket is the agent's socket.
func (c *Client) Socket() string { return c.socket }

// Get requests a path of the API and returns the answer's text. If the status is not 200, the
// error has the agent's text.
func (c *Client) Get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.sendRequest(ctx, http.MethodGet, path, query, nil)
}

// formJSON requests an answer as JSON.
var formJSON = url.Values{"format": {"json"}}

// Proxy forwards requests to the agent, and its answers as they come.
func (c *Client) Proxy() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "agent", "agent"
			r.Out.Header.Del("Cookie")
		},
		Transport: c.http.Transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, (&NoAgentError{c.socket, err}).Error(), http.StatusBadGateway)
		},
	}
}

// JSON requests a path's answer as JSON and reads it into v.
func (c *Client) JSON(ctx context.Context, path string, query url.Values, v any) error {
	q := maps.Clone(formJSON)
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
	return c.sendRequest(ctx, http.MethodPost, path, query, b)
}

// Delete removes what the query names and returns the answer's text.
func (c *Client) Delete(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.sendRequest(ctx, http.MethodDelete, path, query, nil)
}

func (c *Client) sendRequest(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	resp, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("answer of %s to %s: %w", c.socket, path, err)
	}
	return b, nil
}

// do sends a request. The answer has status 200; the caller closes its body.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: "agent", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error // has the placeholder address of the request
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, &NoAgentError{c.socket, err}
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("answer of %s to %s: %w", c.socket, path, err)
	}
	return nil, errors.New(strings.TrimSpace(string(b)))
}

// TraceLive begins a live trace and calls tell with each line of the answer, until the trace
// ends or tell returns an error. If ctx ends, the trace ends and TraceLive returns nil.
func (c *Client) TraceLive(ctx context.Context, r *LiveTraceRequest, tell func(*LiveLine) error) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	resp, err := c.do(ctx, http.MethodPost, "/trace/live", nil, b)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for d := json.NewDecoder(resp.Body); ; {
		var l LiveLine
		switch err := d.Decode(&l); {
		case err == io.EOF, err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("answer of %s to /trace/live: %w", c.socket, err)
		case l.Error != "":
			return errors.New(l.Error)
		}
		if err := tell(&l); err != nil {
			return err
		}
	}
}

// Ready says whether the agent forwards: its pipeline is loaded and its ports are open. It does
// not check whether the objects are read.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.Get(ctx, "/readyz", url.Values{"exclude": {SourceCondition}})
	return err
}

// IsSwitch says whether a switch answers. An agent does not have the path.
func (c *Client) IsSwitch(ctx context.Context, waitAtMost time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, waitAtMost)
	defer cancel()
	_, err := c.Get(ctx, "/v1/switch", nil)
	return err == nil
}

// besideTimeout is how long a switch without an answering agent may take.
const besideTimeout = time.Second

// switchBeside is the socket of a switch that answers beside an agent's socket. It is the switch
// that the agent launched, or the default switch's in the directory. "" if there is none.
func switchBeside(socket string) string {
	for _, s := range []string{config.SwitchSocket(socket), filepath.Join(filepath.Dir(socket), filepath.Base(config.DefaultSwitch))} {
		if s != socket && NewClient(s).IsSwitch(context.Background(), besideTimeout) {
			return s
		}
	}
	return ""
}

// NodeName is the name of the agent's Node; "" if the agent does not know it or does not
// answer.
func (c *Client) NodeName(ctx context.Context) string {
	var rows []control.NodeRow
	if err := c.JSON(ctx, "/nodes", nil, &rows); err == nil {
		for _, r := range rows {
			if r.Here {
				return r.Name
			}
		}
	}
	return ""
}

// SourceCondition is the condition of /readyz that objects are read. Callers exclude it to know
// only whether the agent forwards.
const SourceCondition = "source"
