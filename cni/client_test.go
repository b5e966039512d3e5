package cni

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// answering is a client of an agent that always gives the same answer.
func answering(t *testing.T, status int, text string) *Client {
	t.Helper()
	c := &Client{filepath.Join(t.TempDir(), "agent.sock")}
	ln, err := net.Listen("unix", c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/cni/add" || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	})}
	go s.Serve(ln)
	t.Cleanup(func() { s.Close() })
	return c
}

// TestAnswers: a result, the agent's own error, and answers that cannot be read.
func TestAnswers(t *testing.T) {
	for _, a := range []struct {
		status int
		text   string
		code   uint // 0: a result
	}{
		{200, `{"result": {"cniVersion": "1.1.0", "ips": [{"address": "10.10.0.2/24"}]}}`, 0},
		{422, `{"code": 101, "msg": "none is left"}`, CodeNoAddress},
		{200, `{"result": `, types.ErrInternal},
		{422, `{"msg": "no code"}`, types.ErrInternal},
		{404, `404 page not found`, types.ErrInternal},
	} {
		reply, err := answering(t, a.status, a.text).SendRequest(t.Context(), Add, &Request{})
		var e *types.Error
		if a.code == 0 && (err != nil || reply.Result.CNIVersion != types100.ImplementedSpecVersion || len(reply.Result.IPs) != 1) {
			t.Errorf("%s: %+v, %v", a.text, reply, err)
		}
		if a.code != 0 && (!errors.As(err, &e) || e.Code != a.code) {
			t.Errorf("%d %s: %v, want code %d", a.status, a.text, err, a.code)
		}
	}
}

// TestAway: ErrAway means that no agent listens. Any other failure is another error.
func TestAway(t *testing.T) {
	away := &Client{filepath.Join(t.TempDir(), "agent.sock")}
	if _, err := away.SendRequest(t.Context(), Add, &Request{}); !errors.Is(err, ErrAway) {
		t.Errorf("no socket: %v", err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: away.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, err = away.SendRequest(t.Context(), Add, &Request{})
	if e := (*types.Error)(nil); !errors.As(err, &e) || e.Code != types.ErrTryAgainLater {
		t.Errorf("an agent that is killed while it answers: %v", err)
	}
	ln.Close()
	if _, err := away.SendRequest(t.Context(), Add, &Request{}); !errors.Is(err, ErrAway) {
		t.Errorf("the socket of an agent that is gone: %v", err)
	}
}

// FuzzReply: each answer is a reply or an error with a code.
func FuzzReply(f *testing.F) {
	f.Add(200, []byte(`{"result": {"cniVersion": "1.1.0"}}`))
	f.Add(422, []byte(`{"code": 11, "msg": "later"}`))
	f.Fuzz(func(t *testing.T, status int, text []byte) {
		reply, err := parseReply(status, text)
		if (reply == nil) == (err == nil) || reply != nil && status != 200 {
			t.Errorf("%d %q: %+v, %v", status, text, reply, err)
		}
		if e := (*types.Error)(nil); err != nil && (!errors.As(err, &e) || e.Code == 0) {
			t.Errorf("%d %q: %v has no code", status, text, err)
		}
	})
}
