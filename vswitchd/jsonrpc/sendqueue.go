package jsonrpc

import (
	"io"
	"sync"
)

// Outbox keeps messages for a peer until its writer has sent them. Several goroutines may
// put messages into it; they leave in the order in which they came.
type Outbox struct {
	max int

	mu     sync.Mutex
	moved  sync.Cond // a message was put, the queue became empty, or the outbox was closed
	queue  [][]byte
	bytes  int // of queue, and of the message that is being sent
	closed bool
}

// NewOutbox makes an outbox that keeps at most max bytes. One message of any length is kept
// if no other one waits.
func NewOutbox(max int) *Outbox {
	o := &Outbox{max: max}
	o.moved.L = &o.mu
	return o
}

// Put adds a message. It reports false if the outbox is full or closed: the peer does not
// read, and the caller has to disconnect it.
func (o *Outbox) Put(v any) bool {
	b, err := Encode(v)
	if err != nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.bytes > 0 && o.bytes+len(b) > o.max {
		return false
	}
	o.queue = append(o.queue, b)
	o.bytes += len(b)
	o.moved.Broadcast()
	return true
}

// WaitForSpace waits until half of the outbox is free. A reader calls it before it reads the next
// request, which slows down a peer that does not read the replies. It reports false if the outbox
// was closed.
func (o *Outbox) WaitForSpace() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && o.bytes > o.max/2 {
		o.moved.Wait()
	}
	return !o.closed
}

// Closed reports whether the outbox was closed.
func (o *Outbox) Closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// Close drops the messages that wait, and ends Run and WaitForSpace.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.queue = true, nil
	o.moved.Broadcast()
}

// Run sends messages until the outbox is closed or the peer fails.
func (o *Outbox) Run(w io.Writer) error {
	for {
		b := o.next()
		if b == nil {
			return nil
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		o.sent(len(b))
	}
}

// next waits for a message; nil means that the outbox was closed.
func (o *Outbox) next() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && len(o.queue) == 0 {
		o.moved.Wait()
	}
	if o.closed {
		return nil
	}
	b := o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	return b
}

func (o *Outbox) sent(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= n
	o.moved.Broadcast()
}
