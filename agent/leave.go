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

// Leaving: another agent replaces this one (Run with takeOver). This agent ends and removes
// nothing: the switch, its ports and the Node's side stay, and packets pass. The other agent
// asks with POST /leave on the API's socket, an HTTP upgrade. The connection closes when this
// agent has ended.

// ErrTakenOver says that another agent has taken over.
var ErrTakenOver = errors.New("another agent has taken over")

// ErrAgain says that the switch has ended. Start the agent again, as after a kill.
var ErrAgain = errors.New("the switch has ended: start the agent again")

// leaveProtocol is the protocol of the upgraded connection, which carries no data. It is the
// same in all versions.
const leaveProtocol = "antrail-leave/1"

// answerLeave answers POST /leave: this agent ends.
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

// stopForSuccessor stops all goroutines and keeps stop from removing anything. The successor
// learns of the end when its connection closes.
func (a *Agent) stopForSuccessor(talk door.MessageConn, others, watching *group) error {
	a.log.Info("leaving: another agent takes over the switch, ports and routes")
	a.successor = &talk
	return errors.Join(ErrTakenOver, others.stop(), watching.stop())
}

// leaving is how long an agent may take to end: to finish the plugin's calls, and for the
// kernel to take its ports apart.
const leaving = time.Minute

// word is how long an agent may take to answer at its socket.
const word = 5 * time.Second

// askToLeave asks the agent at a socket to leave, and returns when it has ended.
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
		return fmt.Errorf("the agent at %s does not leave its place; stop it: %w", socket, err)
	}
	log.Info("the previous agent has left")
	return nil
}
