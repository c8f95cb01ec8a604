package country

import (
	"context"
	"net/http"
)

// What large answers may take, and what one is weighed as.
const (
	AnswerSmall = answerSmall
	AnswersMax  = answersMax
	PartBytes   = partBytes
)

// WeightOf is what an answer is weighed as.
func WeightOf(bytes, bytesMax int64) int64 { return weightOf(bytes, bytesMax) }

// ReadBody reads the answer of no call.
func ReadBody(resp *http.Response, bytesMax int64) ([]byte, error) {
	return readAnswer(context.Background(), resp, bytesMax)
}

// NewClient is the client that packs get.
var NewClient = newClient

// CallersMax bounds the clients that are kept at an authority.
const CallersMax = callersMax

// All are the clients that are kept.
func (c *Callers) All() (list []*http.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		list = append(list, client)
	}
	return list
}
