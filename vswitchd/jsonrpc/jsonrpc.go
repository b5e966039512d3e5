// Package jsonrpc reads and writes the messages of JSON-RPC 1.0 that OVSDB (RFC 7047 section 4)
// and the control sockets of Open vSwitch's daemons use.
//
// Messages follow each other without a length or a delimiter. A peer may send anything, so Reader
// limits the bytes and the depth of a message. Outbox limits the messages that wait for a peer
// that does not read.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDepth is the largest nesting depth of a message. A transaction of ovs-vsctl has depth 8.
const maxDepth = 64

// ErrTooLong is returned for a message with more bytes than the Reader's limit.
var ErrTooLong = errors.New("the message is too long")

// Message is a request, a notification or a reply.
type Message struct {
	// Method is empty in a reply.
	Method string
	Params []any
	// ID is nil in a notification. Numbers are json.Number.
	ID            any
	Result, Error any
}

// IsRequest reports whether the sender of a message waits for a reply.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// Reader cuts a stream into messages. One goroutine may use it.
type Reader struct {
	from io.LimitedReader
	max  int64
	dec  *json.Decoder
}

// NewReader reads messages of at most max bytes.
func NewReader(r io.Reader, max int64) *Reader {
	n := &Reader{from: io.LimitedReader{R: r}, max: max}
	n.dec = json.NewDecoder(&n.from)
	return n
}

// Next returns the next message. An error ends the stream: io.EOF between two messages, otherwise
// an error that names the fault.
func (r *Reader) Next() (*Message, error) {
	r.from.N = r.max
	var raw json.RawMessage
	if err := r.dec.Decode(&raw); err != nil {
		if r.from.N <= 0 {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, r.max)
		}
		return nil, err
	}
	return Parse(raw)
}

// Parse reads one message.
func Parse(raw []byte) (*Message, error) {
	v, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("a message of JSON-RPC is an object")
	}
	return fromObject(o)
}

// Decode reads a JSON value of a limited depth. Numbers become json.Number.
func Decode(raw []byte) (any, error) {
	if depth(raw) > maxDepth {
		return nil, fmt.Errorf("the message is nested deeper than %d levels", maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON value")
	}
	return v, nil
}

// depth is the nesting depth of a JSON text.
func depth(raw []byte) (most int) {
	now, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			now++
			most = max(most, now)
		case c == ']' || c == '}':
			now--
		}
	}
	return most
}

// fromObject makes a message of its members. A member that is not of JSON-RPC is an error,
// as with Open vSwitch, because its sender means something that would be lost.
func fromObject(o map[string]any) (*Message, error) {
	m := &Message{}
	for name, v := range o {
		ok := true
		switch name {
		case "id":
			m.ID = v
		case "method":
			m.Method, ok = v.(string)
		case "params":
			m.Params, ok = v.([]any)
		case "result":
			m.Result = v
		case "error":
			m.Error = v
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("a message of JSON-RPC has a wrong member %q", name)
		}
	}
	_, isRequest := o["params"]
	if isRequest != (m.Method != "") {
		return nil, errors.New("a request of JSON-RPC has both a method and params")
	}
	_, hasResult := o["result"]
	_, hasError := o["error"]
	if !isRequest && (m.ID == nil || !hasResult && !hasError) {
		return nil, errors.New("a reply of JSON-RPC has an id, and a result or an error")
	}
	return m, nil
}

// Encode writes a JSON value without escapes that only HTML needs.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Reply is the answer to a request.
func Reply(id, result any) map[string]any {
	return map[string]any{"id": id, "result": result, "error": nil}
}

// Failure is the answer to a request that was refused.
func Failure(id, reason any) map[string]any {
	return map[string]any{"id": id, "result": nil, "error": reason}
}

// Notification is a message that nobody answers.
func Notification(method string, params ...any) map[string]any {
	return map[string]any{"id": nil, "method": method, "params": params}
}
