package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/antrail/antrail/door"
)

// An agent that leaves for another which cannot take over from it: one with another
// configuration, or of a version with which it has no protocol in common. It ends and
// takes nothing back, so that the other starts as after a kill, with the connections
// and entries that there were. Asked for by POST /leave on the API's socket, with an
// HTTP upgrade; the connection is closed when ports and files are free.

// leaveProtocol is what an agent speaks that is asked to leave: nothing. It stays the
// same when handOverProtocol changes.
const leaveProtocol = "antrail-leave/1"

// Predecessor is what becomes of an agent that runs when another is started.
type Predecessor int

const (
	// Stays means that the new agent refuses to start.
	Stays Predecessor = iota
	// HandsOver means that it gives its ports, connections and Node's side to the new
	// one; if it cannot, the new one refuses to start.
	HandsOver
	// HandsOverOrLeaves means that if it cannot, it leaves, and the new one starts as
	// after a kill: in a new process, for what it was given stays mapped in this one.
	HandsOverOrLeaves
)

// notHandedOver is why an agent that runs goes on as if nobody had asked it.
type notHandedOver struct{ error }

func (e notHandedOver) Unwrap() error { return e.error }

// answerLeave has this agent end.
func (a *Agent) answerLeave(ctx context.Context, w http.ResponseWriter, _ *http.Request) {
	t, err := hijack(w, leaveProtocol)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	select {
	case a.leaves <- t:
	case <-ctx.Done():
		t.Close()
	}
}

// leave stops all that runs, and has stop take nothing back. Who asked for it hears
// when that is done.
func (a *Agent) leave(asked talk, others, turning *group) error {
	a.log.Info("leaving, for another agent that cannot take over; all stays as it is")
	a.left, a.asked = true, &asked
	return errors.Join(ErrTakenOver, others.stop(), turning.stop())
}

// leaving is how long an agent may take to end: what it is doing for a plugin, a
// batch of packets, and as long as the kernel needs to take its ports apart.
const leaving = time.Minute

// askToLeave has the agent at a socket leave, and returns when it has.
func askToLeave(ctx context.Context, socket string, log *slog.Logger) error {
	conn, err := (&net.Dialer{Timeout: word}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil // it has ended meanwhile
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(leaving)); err != nil {
		return err
	}
	if err = door.Upgrade(conn, "/leave", leaveProtocol, nil); err == nil {
		_, err = io.Copy(io.Discard, conn) // until it is closed
	}
	if err != nil {
		return fmt.Errorf("the agent at %s does not leave; stop it: %w", socket, err)
	}
	log.Info("the agent before has left")
	return nil
}
