package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// between is the time from an answer to the next question.
	between = 10 * time.Millisecond
	// answering is how long an answer may take. It is several times TCP's wait before a
	// retransmission.
	answering = 30 * time.Second
)

// hold sends requests over one connection until its input ends.
func hold(address string) error {
	said, err := holdUntil(os.Stdin, address)
	fmt.Print(said)
	return err
}

// holdUntil sends requests over one connection until input ends. It returns the number of answers
// and the longest wait. If the connection is lost, the error has its ends and the time.
//
// It does not use http.Client. If the goroutine that sent the question does not hear of the
// answer within 50 ms, http.Client gives up a sound connection. That happens on a busy machine.
// It then repeats the question over another connection.
func holdUntil(input io.Reader, address string) (said string, err error) {
	c, err := net.DialTimeout("tcp", address, waitAtMost)
	if err != nil {
		return "", err
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	ended := make(chan struct{})
	go runUntilEnd(input, ended)
	var longest time.Duration
	for n := 0; ; n++ {
		select {
		case <-ended:
			return fmt.Sprintf("%d answers, the longest after %d ms\n", n, longest.Milliseconds()), nil
		case <-time.After(between):
		}
		requestedAt := time.Now()
		if err := askOver(c, answers); err != nil {
			return "", fmt.Errorf("%s to %s, asked at %s after %d answers, lost %d ms later: %w",
				c.LocalAddr(), c.RemoteAddr(), requestedAt.UTC().Format("15:04:05.000"), n, time.Since(requestedAt).Milliseconds(), err)
		}
		longest = max(longest, time.Since(requestedAt))
	}
}

// askOver sends one request, and reads the whole answer.
func askOver(c net.Conn, answers *bufio.Reader) error {
	if err := c.SetDeadline(time.Now().Add(answering)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: web\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

func runUntilEnd(r io.Reader, ended chan<- struct{}) {
	io.Copy(io.Discard, r)
	close(ended)
}
