package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/web"
)

// The page (package web) over TCP. It is off unless the configuration gives it an address. A
// file beside the socket has the URL that admits the next browser. Only this user may read the
// file, and that user may use the socket anyway.

// PageURL is the URL that admits a browser once to the page of the agent at a socket. The agent
// has to answer, because a killed agent leaves a URL that admits nobody.
func PageURL(socket string) (string, error) {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return "", fmt.Errorf("no agent answers at %s: %w; start one (antrail agent --config FILE), name its socket with --socket, or show files without one: antrail page --serve 127.0.0.1:8080 --manifests DIR --node NAME", socket, err)
	}
	c.Close()
	b, err := os.ReadFile((&config.Config{Socket: socket}).PageFile())
	if errors.Is(err, os.ErrNotExist) && api.NewClient(socket).IsSwitch(context.Background(), time.Second) {
		return "", fmt.Errorf("the switch at %s serves no page: antrail page --serve 127.0.0.1:8080 --socket %s serves one", socket, socket)
	}
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("the agent at %s serves no page: set page.address in its configuration, or serve one here with --serve", socket)
	}
	return strings.TrimSpace(string(b)), err
}

// CounterText is the answer to GET /counters.
func (p *Answers) CounterText(context.Context) ([]byte, error) {
	failed := p.BeginAsking()
	all := p.counters()
	if err := failed(); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// NewPage makes the page at an address. It calls invite with the URL of each token that admits
// a browser.
func NewPage(o web.Options, address string, invite func(url string) error) (*web.Page, error) {
	o.Invite = func(token string) error { return invite(web.URL(address, token)) }
	return web.New(o)
}
