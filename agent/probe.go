package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"golang.org/x/sys/unix"
)

// Probe asks an agent's socket for one of the health paths, /healthz or /readyz; the
// error has what is wrong. With own, the agent has to be a process that the caller can
// see (SO_PEERCRED gives its number, and 0 for a process of another PID namespace): two
// containers of which one is to take over from the other share the socket, and each
// has to know whether it is the one.
func Probe(ctx context.Context, socket, path string, own bool) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("no agent answers at %s: %w", socket, err)
	}
	defer conn.Close()
	if own {
		if err := visible(conn.(*net.UnixConn)); err != nil {
			return fmt.Errorf("the agent at %s: %w", socket, err)
		}
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	c := &Client{socket, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
	_, err = c.Get(ctx, path, nil)
	return err
}

// visible says why who listens at the other end is no process of the caller's PID
// namespace.
func visible(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if asked != nil {
		return fmt.Errorf("SO_PEERCRED: %w", asked)
	}
	if cred.Pid == 0 {
		return fmt.Errorf("it is another container's")
	}
	return nil
}
