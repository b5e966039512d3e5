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

// An agent that leaves for another, which takes its place (Run with takeOver). It ends and
// takes nothing back: the switch, its ports and the Node's side stay, and packets pass.
// Asked for by POST /leave on the API's socket, with an HTTP upgrade; the connection is
// closed when the agent has ended.

// ErrTakenOver is why an agent ended that another has taken over from.
var ErrTakenOver = errors.New("another agent has taken over")

// ErrAgain is why an agent ended that is to be started again, as after a kill: its switch
// has ended.
var ErrAgain = errors.New("to be started again")

// leaveProtocol is what an agent speaks that is asked to leave: nothing. It is the same in
// all versions.
const leaveProtocol = "antrail-leave/1"

// answerLeave has this agent end.
func (a *Agent) answerLeave(ctx context.Context, w http.ResponseWriter, _ *http.Request) {
	t, err := door.Hijack(w, leaveProtocol)
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

// stopForSuccessor stops all that runs, and has stop take nothing back. Who asked for it hears
// when that is done.
func (a *Agent) stopForSuccessor(talk door.Talk, others, watching *group) error {
	a.log.Info("leaving: another agent takes over; all stays as it is")
	a.successor = &talk
	return errors.Join(ErrTakenOver, others.stop(), watching.stop())
}

// leaving is how long an agent may take to end: what it is doing for a plugin, and as long
// as the kernel needs to take its ports apart.
const leaving = time.Minute

// word is how long an agent may take to answer at its socket.
const word = 5 * time.Second

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
