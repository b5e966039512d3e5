package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/web"
)

// The page on which a person sees the switch at work (package web), over TCP. It
// is off unless the configuration gives it an address. What lets the next browser
// in is a URL in a file that only this user may read, beside the socket: who may
// open that may see all of it anyway.

// PageConfig says where the page is served; nowhere without Address.
type PageConfig struct {
	// Address is an IP address of the loopback and a port.
	Address string `json:"address,omitempty"`
	// BeyondLoopback allows any other address. The page is not encrypted: whoever
	// sees its packets on the way can do what the browser can.
	BeyondLoopback bool `json:"beyondLoopback,omitempty"`
	// Plots is a directory that antrail bench --save wrote, to be shown.
	Plots string `json:"plots,omitempty"`
}

func (c *PageConfig) check(f *faults) {
	if c.Address == "" {
		f.check(*c == PageConfig{}, "page.address: missing")
		return
	}
	a, err := netip.ParseAddrPort(c.Address)
	f.check(err == nil && a.Port() != 0, "page.address: %q is no IP address with a port", c.Address)
	f.check(err != nil || c.BeyondLoopback || a.Addr().IsLoopback(),
		"page.address: %s is no loopback address: others would see what a browser is shown; page.beyondLoopback: true allows it", c.Address)
}

// pageFile has the URL that lets the next browser in.
func (c *Config) pageFile() string { return c.besideSocket("page.url") }

// PageURL is the URL that lets a browser in once to the page of the agent at a
// socket. An agent that was killed leaves one that lets nobody in: it has to answer.
func PageURL(socket string) (string, error) {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return "", fmt.Errorf("no agent answers at %s: %w; start one (antrail agent --config FILE), name its socket with --socket, or show files without one: antrail page --serve 127.0.0.1:8080 --manifests DIR --node NAME", socket, err)
	}
	c.Close()
	b, err := os.ReadFile((&Config{Socket: socket}).pageFile())
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("the agent at %s serves no page: page.address of its configuration says where it is to; or serve one here with --serve", socket)
	}
	return strings.TrimSpace(string(b)), err
}

// counterText is what GET /counters answers.
func (p *pipeline) counterText(context.Context) ([]byte, error) {
	failed := p.beginAsking()
	all := p.counters()
	if err := failed(); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// newPage makes the page at an address. Each token that it waits for goes to
// invite, as a URL.
func newPage(o web.Options, address string, invite func(url string) error) (*web.Page, error) {
	o.Invite = func(token string) error { return invite(web.URL(address, token)) }
	return web.New(o)
}

// runPage serves the page until ctx ends. The switch does not depend on it: an
// address that cannot be had is told and tried again.
func (a *Agent) runPage(ctx context.Context) {
	c := &a.config.Page
	a.servesTCP(ctx, "the page", c.Address, func(ctx context.Context, ln net.Listener) error {
		defer os.Remove(a.config.pageFile())
		here := web.Node{Name: a.config.NodeName, API: a.routes(ctx), Counters: a.counterText}
		page, err := newPage(web.Options{Nodes: []web.Node{here}, Plots: c.Plots, Log: a.log}, c.Address, func(url string) error {
			return switchd.WriteOwnFile(a.config.pageFile(), []byte(url+"\n"))
		})
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		return web.Serve(ctx, ln, page)
	})
}

// tcpRetry is how long an address that cannot be had waits for the next try.
const tcpRetry = 5 * time.Second

// servesTCP serves something at an address until ctx ends.
func (a *Agent) servesTCP(ctx context.Context, what, address string, serve func(context.Context, net.Listener) error) {
	var lc net.ListenConfig
	for ctx.Err() == nil {
		ln, err := lc.Listen(ctx, "tcp", address)
		if err == nil {
			a.log.Info("served over TCP: "+what, "address", address)
			err = serve(ctx, ln)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		a.log.Warn("not served over TCP, trying again: "+what, "address", address, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(tcpRetry):
		}
	}
}
