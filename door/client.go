package door

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
)

// Client is a Switch that runs in another process. If the switch does not answer, methods without
// an error return the zero value. All methods count such failures: a caller compares Failures
// before and after.
type Client struct {
	// InvalidTTL makes Control ask for packets whose TTL ends at a dec_ttl. Set it before
	// Control.
	InvalidTTL bool

	http     *http.Client
	socket   string
	token    atomic.Pointer[string] // the controller's token, if this client is the controller
	failures atomic.Uint64
	lastErr  atomic.Pointer[error]

	mu      sync.Mutex
	info    PipelineInfo
	infoAt  time.Time
	hasInfo bool
}

var _ Switch = (*Client)(nil)

// Dial makes a client of the switch at a unix socket. It does not connect yet.
func Dial(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return NewClient(socket, &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16})
}

// NewClient makes a client with a transport. Errors contain name.
func NewClient(name string, by http.RoundTripper) *Client {
	return &Client{socket: name, http: &http.Client{Transport: by}}
}

// Info describes the switch. It returns an error if the switch does not answer or uses another
// version.
func (c *Client) Info(ctx context.Context) (*SwitchInfo, error) {
	var i SwitchInfo
	if err := c.do(ctx, http.MethodGet, "/v1/switch", nil, nil, &i); err != nil {
		return nil, err
	}
	if i.Oldest > Version || i.API < Version-1 {
		return nil, fmt.Errorf("the switch at %s (%s) speaks version %d of the door, and this program (version %d) works with %d to %d: update the older of the two", c.socket, i.Release, i.API, Version, Version-1, Version+1)
	}
	return &i, nil
}

// Socket is the switch's socket.
func (c *Client) Socket() string { return c.socket }

// Failures counts failures. An unanswered request counts at least once. An error of the switch
// counts only if the method cannot return it.
func (c *Client) Failures() uint64 { return c.failures.Load() }

// Err is the error of the last failed request; nil if none has failed.
func (c *Client) Err() error {
	if err := c.lastErr.Load(); err != nil {
		return *err
	}
	return nil
}

// answerTime is how long a switch may take to answer a request, streams excepted.
const answerTime = time.Minute

// get requests a value.
func get[T any](c *Client, path string, query url.Values) (v T) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	c.countFailure(c.do(ctx, http.MethodGet, path, query, nil, &v))
	return v
}

// countFailure counts a failure.
func (c *Client) countFailure(err error) {
	if err != nil {
		c.lastErr.Store(&err)
		c.failures.Add(1)
	}
}

// sendValue sends a value, and reads the answer into v if v is not nil.
func (c *Client) sendValue(method, path string, body, v any) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.do(ctx, method, path, nil, bytes.NewReader(text), v)
}

// do sends a request and reads the answer. An answer other than 200 becomes an error with the
// switch's message.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader, v any) error {
	resp, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if v != nil {
		err = json.NewDecoder(resp.Body).Decode(v)
	}
	if err == nil { // to the end, or the connection cannot be used again
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil {
		err = fmt.Errorf("answer of %s to %s: %w", c.socket, path, err)
		c.countFailure(err)
	}
	return err
}

// send sends a request. The answer has status 200; the caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: "switch", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if token := c.token.Load(); token != nil {
		req.Header.Set(controllerHeader, *token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error // u names the pseudo address of the request
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, c.unanswered(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return nil, c.unanswered(err)
	}
	switch said := strings.TrimSpace(string(text)); resp.StatusCode {
	case http.StatusConflict:
		return nil, &ConflictError{said}
	case http.StatusUpgradeRequired:
		return nil, ErrConfined
	default:
		return nil, errors.New(said)
	}
}

// ConflictError is returned if another controller is connected.
type ConflictError struct{ Text string }

// Error implements error.
func (e *ConflictError) Error() string { return e.Text }

// unanswered is the error of an unanswered request. It counts as a failure, unless the caller has
// cancelled the request.
func (c *Client) unanswered(err error) error {
	err = &AwayError{c.socket, err}
	if !errors.Is(err, context.Canceled) {
		c.countFailure(err)
	}
	return err
}

// AwayError is returned if no switch answers at a socket.
type AwayError struct {
	Socket string
	Err    error // of the connection
}

// Error implements error.
func (e *AwayError) Error() string {
	return fmt.Sprintf("no switch answers at %s: %v", e.Socket, e.Err)
}

// Unwrap returns the error of the connection.
func (e *AwayError) Unwrap() error { return e.Err }

// infoAge is the maximum age of cached pipeline information. While this client is the controller,
// only its bundles change the pipeline.
const infoAge = time.Second

// pipelineInfo has the parts of the pipeline that change with bundles, from the cache if it is
// recent.
func (c *Client) pipelineInfo() PipelineInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasInfo || time.Since(c.infoAt) > infoAge {
		before := c.Failures()
		i := get[SwitchInfo](c, "/v1/switch", nil)
		if c.Failures() != before {
			return c.info // the last known one
		}
		c.info, c.infoAt, c.hasInfo = i.PipelineInfo, time.Now(), true
	}
	return c.info
}

// Names implements Switch, as the methods below do.
func (c *Client) Names() *flow.Names { return c.pipelineInfo().Names }

// First is the number of the table that packets enter at.
func (c *Client) First() uint8 { return c.pipelineInfo().First }

// Generation counts the changes of the pipeline.
func (c *Client) Generation() uint64 { return get[SwitchInfo](c, "/v1/switch", nil).Generation }

// Learnings counts the changes of learned entries.
func (c *Client) Learnings() uint64 { return get[SwitchInfo](c, "/v1/switch", nil).Learnings }

var asJSON = url.Values{"format": {"json"}}

// Flows are all entries.
func (c *Client) Flows() []telemetry.FlowStats {
	return c.flows(asJSON)
}

// FlowsIn are the entries of a table.
func (c *Client) FlowsIn(table uint8) []telemetry.FlowStats {
	return c.flows(url.Values{"format": {"json"}, "table": {fmt.Sprint(table)}})
}

// flows reads entries, a line each.
func (c *Client) flows(query url.Values) (all []telemetry.FlowStats) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/v1/flows", query, nil)
	if err != nil {
		c.countFailure(err)
		return nil
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return all
		}
		all = append(all, telemetry.FlowStats{})
		if err == nil {
			err = all[len(all)-1].UnmarshalJSON(line)
		}
		if err != nil {
			c.countFailure(fmt.Errorf("answer of %s to /v1/flows: entry %d: %w", c.socket, len(all), err))
			return nil
		}
	}
}

// Groups are all groups.
func (c *Client) Groups() []telemetry.GroupStats {
	return get[[]telemetry.GroupStats](c, "/v1/groups", asJSON)
}

// Meters are all meters.
func (c *Client) Meters() []telemetry.MeterStats {
	return get[[]telemetry.MeterStats](c, "/v1/meters", asJSON)
}

// Tables are all tables.
func (c *Client) Tables() []telemetry.TableStats {
	return get[[]telemetry.TableStats](c, "/v1/tables", nil)
}

// Apply sends a bundle as text.
func (c *Client) Apply(b *flow.Bundle) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	text, to := io.Pipe()
	go runWriteBundle(to, b)
	defer text.Close()
	return c.applyText(ctx, text)
}

// ApplyText applies a bundle as Apply does.
func (c *Client) ApplyText(t *BundleText) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	return c.applyText(ctx, t.reader())
}

// applyText sends a bundle's text.
func (c *Client) applyText(ctx context.Context, text io.Reader) error {
	var i PipelineInfo
	if err := c.do(ctx, http.MethodPost, "/v1/bundle", nil, text, &i); err != nil {
		return err
	}
	c.mu.Lock()
	c.info, c.infoAt, c.hasInfo = i, time.Now(), true
	c.mu.Unlock()
	return nil
}

// runWriteBundle writes a bundle into a request.
func runWriteBundle(to *io.PipeWriter, b *flow.Bundle) { to.CloseWithError(WriteBundle(to, b)) }

// Relearn installs entries that packets have learned.
func (c *Client) Relearn(all []telemetry.Learned) error {
	return c.sendValue(http.MethodPost, "/v1/relearn", all, nil)
}

// Ports are all ports.
func (c *Client) Ports() []telemetry.PortStats {
	return get[[]telemetry.PortStats](c, "/v1/ports", nil)
}

// DropSample is the last packet that a port dropped for a reason.
func (c *Client) DropSample(no uint32, reason string) ports.DropSample {
	return get[ports.DropSample](c, portPath(no)+"/sample", url.Values{"reason": {reason}})
}

func portPath(no uint32) string { return fmt.Sprint("/v1/ports/", no) }

// OpenPort opens a port.
func (c *Client) OpenPort(p *PortSpec) error {
	return c.sendValue(http.MethodPut, portPath(p.No), p, nil)
}

// SecurePort limits the packets that a port may send.
func (c *Client) SecurePort(no uint32, security l2.PortSecurity) error {
	return c.sendValue(http.MethodPut, portPath(no)+"/security", security, nil)
}

// ConfigurePort changes a port's settings by the controller.
func (c *Client) ConfigurePort(no uint32, config telemetry.PortConfig) error {
	return c.sendValue(http.MethodPut, portPath(no)+"/config", config, nil)
}

// RemovePort closes a port.
func (c *Client) RemovePort(no uint32) error {
	return c.sendValue(http.MethodDelete, portPath(no), struct{}{}, nil)
}

// SetTunnelPeers sets the Nodes that the tunnel knows.
func (c *Client) SetTunnelPeers(all []TunnelPeer) error {
	return c.sendValue(http.MethodPut, "/v1/tunnel/peers", all, nil)
}

// SetTunnelSilent sets the Nodes that do not answer.
func (c *Client) SetTunnelSilent(all []netip.Addr) error {
	return c.sendValue(http.MethodPut, "/v1/tunnel/silent", all, nil)
}

// SetTunnelEgresses sets the addresses of Egresses.
func (c *Client) SetTunnelEgresses(e *TunnelEgresses) error {
	return c.sendValue(http.MethodPut, "/v1/tunnel/egresses", e, nil)
}

// TunnelPathMTU is the inner MTU to a Node.
func (c *Client) TunnelPathMTU(node netip.Addr) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	var p PathMTU
	err := c.do(ctx, http.MethodGet, "/v1/tunnel/path-mtu", url.Values{"node": {node.String()}}, nil, &p)
	return p.MTU, err
}

// FlushMACs removes the addresses that NORMAL has learned.
func (c *Client) FlushMACs() error {
	return c.sendValue(http.MethodDelete, "/v1/fdb", struct{}{}, nil)
}

// MACTableStats counts the addresses that NORMAL learns.
func (c *Client) MACTableStats() telemetry.MACTableStats {
	return get[telemetry.MACTableStats](c, "/v1/fdb/stats", nil)
}

// LearnedMACs are the addresses that NORMAL has learned.
func (c *Client) LearnedMACs() []telemetry.LearnedMAC {
	return get[[]telemetry.LearnedMAC](c, "/v1/fdb", nil)
}

// DropsSince are dropped packets.
func (c *Client) DropsSince(no uint64) DropsAnswer {
	before := c.Failures()
	a := get[DropsAnswer](c, "/v1/drops", url.Values{"since": {fmt.Sprint(no)}})
	if c.Failures() != before {
		return DropsAnswer{Next: no}
	}
	return a
}
