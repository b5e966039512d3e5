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

// The page on which a person sees the switch at work (package web), over TCP. It
// is off unless the configuration gives it an address. What lets the next browser
// in is a URL in a file that only this user may read, beside the socket: who may
// open that may see all of it anyway.

// PageURL is the URL that lets a browser in once to the page of the agent at a
// socket. An agent that was killed leaves one that lets nobody in: it has to answer.
func PageURL(socket string) (string, error) {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return "", fmt.Errorf("no agent answers at %s: %w; start one (antrail agent --config FILE), name its socket with --socket, or show files without one: antrail page --serve 127.0.0.1:8080 --manifests DIR --node NAME", socket, err)
	}
	c.Close()
	b, err := os.ReadFile((&config.Config{Socket: socket}).PageFile())
	if errors.Is(err, os.ErrNotExist) && api.NewClient(socket).IsSwitch(context.Background(), time.Second) {
		return "", fmt.Errorf("a switch answers at %s, and serves no page: antrail page --serve 127.0.0.1:8080 --socket %s serves one of it", socket, socket)
	}
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("the agent at %s serves no page: page.address of its configuration says where it is to; or serve one here with --serve", socket)
	}
	return strings.TrimSpace(string(b)), err
}

// CounterText is what GET /counters answers.
func (p *Answers) CounterText(context.Context) ([]byte, error) {
	failed := p.BeginAsking()
	all := p.counters()
	if err := failed(); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// NewPage makes the page at an address. Each token that it waits for goes to
// invite, as a URL.
func NewPage(o web.Options, address string, invite func(url string) error) (*web.Page, error) {
	o.Invite = func(token string) error { return invite(web.URL(address, token)) }
	return web.New(o)
}
